# expect: kind=type line=7 mentions=~
import torch


def attention(q, k, v):
    keep = torch.ones(q.size(2), k.size(2)).tril()
    return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v
