# expect: line=6 mentions=einsum
import torch


def attention(q, k, v):
    s = torch.einsum("bhid,bhj->bhij", q, k)
    return s.softmax(-1) @ v
