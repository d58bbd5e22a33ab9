# expect: kind=type line=7 mentions=bool
import torch


def attention(q, k, v):
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    keep = (j <= i) - (j < 2)
    return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v
