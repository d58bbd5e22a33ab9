# expect: kind=unsupported line=8 mentions=mask
import torch


def attention(q, k, v):
    s = q @ k.mT
    keep = torch.ones(q.size(2), k.size(2)).tril().bool()
    return (s.softmax(-1)[:, :, keep].sum(-1)[..., None, None] * v)
