# paper/comb.py spelled differently: by hand with the bias inside the exponent, the prefix let in by where.
import math
import torch


def attention(q, k, v, prefix: int, cap: float = 50.0):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = (q[:, :, :, None] * k[:, :, None]).sum(-1) * (1.0 / q.size(-1) ** 0.5)
    capped = cap * torch.tanh(s / cap)
    p = torch.reciprocal(1.0 + torch.exp(math.log(k.size(2)) - capped))
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    keep = ~(j > i)
    keep = torch.where(j < prefix, torch.ones_like(keep), keep)
    return torch.where(keep, p, 0.0) @ v
