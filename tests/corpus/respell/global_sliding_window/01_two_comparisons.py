# paper/global_sliding_window.py spelled differently: the distance as two comparisons, masked_fill, method softmax.
import torch


def attention(q, k, v, window: int):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / q.size(-1) ** 0.5
    i = torch.arange(q.size(2)).view(-1, 1)
    j = torch.arange(k.size(2)).view(1, -1)
    near = (i - j <= window) & (j - i <= window)
    known = (i < 2 * window) | (j < 2 * window)
    s = s.masked_fill(~(near | known), float("-inf"))
    return s.softmax(-1) @ v
