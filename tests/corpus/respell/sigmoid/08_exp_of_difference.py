# paper/sigmoid.py spelled differently: by hand with the bias folded into the exponent's sign.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    kx, vx = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = torch.einsum("bhid,bhjd->bhij", q, kx).div(math.sqrt(q.size(3)))
    e = torch.exp(math.log(kx.size(2)) - s)
    p = torch.reciprocal(e + 1)
    hidden = torch.arange(kx.size(2))[None, :] - torch.arange(q.size(2))[:, None] > 0
    return torch.einsum("bhij,bhjd->bhid", torch.where(hidden, 0.0, p), vx)
