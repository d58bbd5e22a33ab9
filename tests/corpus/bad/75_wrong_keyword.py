# expect: line=6 mentions=axes
import torch


def attention(q, k, v):
    return torch.softmax(q @ k.mT, axes=-1) @ v
