# paper/comb.py spelled differently: mask after the sigmoid, einsum.
import math
import torch


def attention(q, k, v, prefix: int, cap: float = 50.0):
    B, Hq, Sq, D = q.shape
    g, Sk = Hq // k.shape[1], k.shape[2]
    kx, vx = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q, kx) * D ** -0.5
    s = torch.tanh(s / cap) * cap - math.log(Sk)
    i, j = torch.arange(Sq)[:, None], torch.arange(Sk)[None, :]
    p = torch.where((i >= j) | (j < prefix), torch.sigmoid(s), 0.0)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx)
