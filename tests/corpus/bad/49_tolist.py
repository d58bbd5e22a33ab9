# expect: line=6 mentions=tolist
import torch


def attention(q, k, v):
    s = torch.tensor((q @ k.mT).tolist())
    return s.softmax(-1) @ v
