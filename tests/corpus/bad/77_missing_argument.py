# expect: line=6 mentions=dim
import torch


def attention(q, k, v):
    return torch.softmax(q @ k.mT) @ v
