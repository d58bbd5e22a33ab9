# expect: kind=limit line=6
import torch


def attention(q, k, v):
    bias = torch.zeros(2 ** 100)
    return (q @ k.mT + bias[0]).softmax(-1) @ v
