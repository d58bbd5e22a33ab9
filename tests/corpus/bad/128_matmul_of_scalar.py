# expect: kind=shape line=6
import torch


def attention(q, k, v):
    return (q @ torch.tensor(2.0) @ k.mT).softmax(-1) @ v
