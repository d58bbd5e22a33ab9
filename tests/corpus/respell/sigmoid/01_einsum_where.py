# paper/sigmoid.py spelled differently: mask after the sigmoid, einsum.
import math
import torch


def attention(q, k, v):
    B, Hq, Sq, D = q.shape
    Hk, Sk = k.shape[1], k.shape[2]
    kx, vx = k.repeat_interleave(Hq // Hk, dim=1), v.repeat_interleave(Hq // Hk, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q, kx) * D ** -0.5 - math.log(Sk)
    i, j = torch.arange(Sq)[:, None], torch.arange(Sk)[None, :]
    p = torch.where(j <= i, torch.sigmoid(s), 0.0)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx)
