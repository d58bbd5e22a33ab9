# paper/global_sliding_window.py spelled differently: window test on the larger of both differences, numerator before normaliser.
import math
import torch


def attention(q, k, v, window: int):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) * (1.0 / math.sqrt(q.size(-1)))
    i = torch.arange(q.size(-2))[:, None]
    j = torch.arange(k.size(-2))
    near = torch.maximum(i - j, j - i) <= window
    s = torch.where(near | (j < 2 * window) | (i < 2 * window), s, float("-inf"))
    num = torch.exp(s - torch.amax(s, -1, True))
    return (num @ v) / num.sum(dim=-1, keepdim=True)
