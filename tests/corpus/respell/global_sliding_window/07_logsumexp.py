# paper/global_sliding_window.py spelled differently: weights by logsumexp, comparison methods.
import math
import torch


def attention(q, k, v, window: int):
    g = q.size(1) // k.size(1)
    k = torch.repeat_interleave(k, repeats=g, dim=1)
    v = torch.repeat_interleave(v, repeats=g, dim=1)
    s = torch.matmul(q, k.permute(0, 1, 3, 2)).div(math.sqrt(q.size(-1)))
    i = torch.arange(q.size(2)).reshape(-1, 1)
    j = torch.arange(k.size(2)).reshape(1, -1)
    keep = (i - j).abs().le(window) | i.lt(2 * window) | j.lt(2 * window)
    s = s.masked_fill(keep.logical_not(), float("-inf"))
    p = (s - s.logsumexp(-1, keepdim=True)).exp()
    return p.matmul(v)
