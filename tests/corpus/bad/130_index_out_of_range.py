# expect: line=7 mentions=range
import torch


def attention(q, k, v):
    t = torch.tensor([0.5, 1.0])
    return (q @ k.mT * t[2]).softmax(-1) @ v
