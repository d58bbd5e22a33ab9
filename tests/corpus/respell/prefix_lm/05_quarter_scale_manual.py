# paper/prefix_lm.py spelled differently: D**-0.25 on both sides, softmax by hand with the row maximum.
import torch


def attention(q, k, v, prefix):
    c = q.size(-1) ** -0.25
    g = q.size(1) // k.size(1)
    s = torch.einsum("bhie,bhje->bhij", q * c, (k * c).repeat_interleave(g, 1))
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None]
    s = torch.where(~((j - i < 1) | (j < prefix)), float("-inf"), s)
    top = s.amax(dim=-1, keepdim=True)
    e = torch.exp(s - top)
    p = e / e.sum(dim=-1, keepdim=True)
    return torch.einsum("bhij,bhjd->bhid", p, v.repeat_interleave(g, 1))
