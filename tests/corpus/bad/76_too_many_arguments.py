# expect: line=6 mentions=softmax
import torch


def attention(q, k, v):
    return torch.softmax(q @ k.mT, -1, None, 2, 3) @ v
