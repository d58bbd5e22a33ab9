# paper/comb.py spelled differently: keys down the rows.
import math
import torch


def attention(q, k, v, prefix: int, cap: float = 50.0):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    st = torch.einsum("bhjd,bhid->bhji", k, q) / q.size(-1) ** 0.5
    st = torch.tanh(st / cap).mul(cap).sub(math.log(k.size(2)))
    j, i = torch.arange(k.size(2))[:, None], torch.arange(q.size(2))[None, :]
    pt = torch.sigmoid(st).masked_fill(~((i >= j) | (j < prefix)), 0)
    return torch.einsum("bhji,bhjd->bhid", pt, v)
