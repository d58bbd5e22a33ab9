# expect: kind=syntax line=6 mentions=keyword
import torch


def attention(q, k, v):
    return torch.softmax(dim=-1, q @ k.mT) @ v
