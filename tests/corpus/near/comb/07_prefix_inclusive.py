# A near miss of paper/comb.py: prefix holds one key more.
import math
import torch


def attention(q, k, v, prefix: int, cap: float = 50.0):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    s = cap * torch.tanh(s / cap)
    s = s - math.log(k.size(-2))
    i = torch.arange(q.size(-2))[:, None]
    j = torch.arange(k.size(-2))[None, :]
    s = s.masked_fill(~((j <= i) | (j <= prefix)), float("-inf"))
    return torch.sigmoid(s) @ v
