# expect: kind=name line=6 mentions=softmax
import torch


def attention(q, k, v):
    return torch.sofmax(q @ k.mT, dim=-1) @ v
