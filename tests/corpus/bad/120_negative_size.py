# expect: line=6 mentions=negative
import torch


def attention(q, k, v):
    bias = torch.zeros(-3, 2)
    return (q @ k.mT + bias.sum()).softmax(-1) @ v
