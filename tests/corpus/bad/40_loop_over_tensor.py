# expect: kind=unsupported line=7
import torch


def attention(q, k, v):
    total = torch.zeros_like(q)
    for row in q:
        total = total + row
    return (total @ k.mT).softmax(-1) @ v
