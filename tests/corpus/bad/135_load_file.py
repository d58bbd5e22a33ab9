# expect: line=6 mentions=load
import torch


def attention(q, k, v):
    bias = torch.load("bias.pt")
    return (q @ k.mT + bias).softmax(-1) @ v
