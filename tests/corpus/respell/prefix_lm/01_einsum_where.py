# paper/prefix_lm.py spelled differently: einsum, where, an unpacked shape.
import torch


def attention(q, k, v, prefix: int):
    B, Hq, Sq, D = q.shape
    Hk, Sk = k.shape[1], k.shape[2]
    kx = torch.repeat_interleave(k, Hq // Hk, dim=1)
    vx = torch.repeat_interleave(v, Hq // Hk, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q, kx) * D ** -0.5
    i = torch.arange(Sq)[:, None]
    j = torch.arange(Sk)[None, :]
    visible = (j < prefix) | (i >= j)
    s = torch.where(visible, s, float("-inf"))
    p = torch.softmax(s, dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx)
