# paper/sigmoid.py spelled differently: tril of the weights, D**-0.25 on both.
import math
import torch


def attention(q, k, v):
    c = q.size(-1) ** -0.25
    g = q.size(1) // k.size(1)
    k, v = (torch.repeat_interleave(t, repeats=g, dim=1) for t in (k, v))
    s = torch.einsum("bhic,bhjc->bhij", q * c, k * c)
    return torch.sigmoid(s - math.log(k.size(2))).tril() @ v
