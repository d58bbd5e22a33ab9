# expect: kind=unsupported line=6 mentions=with
import torch


def attention(q, k, v):
    with torch.no_grad():
        return (q @ k.mT).softmax(-1) @ v
