# expect: kind=syntax line=6 mentions=string
import torch


def attention(q, k, v):
    s = torch.einsum("bhid,bhjd->bhij, q, k)
    return s.softmax(-1) @ v
