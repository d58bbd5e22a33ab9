# expect: kind=limit line=6
import torch


def attention(q, k, v):
    bias = torch.zeros(10 ** 6, 10 ** 6)
    return (q @ k.mT + bias[: q.size(2), : k.size(2)]).softmax(-1) @ v
