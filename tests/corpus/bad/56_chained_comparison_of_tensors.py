# expect: line=7
import torch


def attention(q, k, v):
    d = torch.arange(q.size(2))[:, None] - torch.arange(k.size(2))[None, :]
    return (q @ k.mT).masked_fill(~(0 <= d < 4), float("-inf")).softmax(-1) @ v
