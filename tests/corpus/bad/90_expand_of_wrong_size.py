# expect: kind=shape line=6 mentions=expand
import torch


def attention(q, k, v):
    bias = torch.zeros(3, 1).expand(7, q.size(2))
    return (q @ k.mT + bias[0]).softmax(-1) @ v
