# expect: kind=unsupported line=5 mentions=compile
import torch


@torch.compile
def attention(q, k, v):
    return (q @ k.mT).softmax(-1) @ v
