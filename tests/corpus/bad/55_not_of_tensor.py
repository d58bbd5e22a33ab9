# expect: line=7 mentions=not
import torch


def attention(q, k, v):
    keep = torch.ones(q.size(2), k.size(2)).tril().bool()
    return (q @ k.mT).masked_fill(not keep, float("-inf")).softmax(-1) @ v
