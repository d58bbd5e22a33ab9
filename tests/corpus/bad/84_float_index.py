# expect: kind=type line=7 mentions=index
import torch


def attention(q, k, v, bias):
    j = torch.arange(k.size(2)) / 2
    return (q @ k.mT + bias[j]).softmax(-1) @ v
