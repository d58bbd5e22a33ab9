# expect: line=8 mentions=and
import torch


def attention(q, k, v):
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    keep = j <= i and i - j < 4
    return (q @ k.mT).masked_fill(~keep, float("-inf")).softmax(-1) @ v
