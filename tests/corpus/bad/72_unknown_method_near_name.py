# expect: kind=name line=7 mentions=masked_fill
import torch


def attention(q, k, v):
    keep = torch.ones(q.size(2), k.size(2)).tril().bool()
    s = (q @ k.mT).mask_fill(~keep, float("-inf"))
    return s.softmax(-1) @ v
