# expect: line=7 mentions=rand
import torch


def attention(q, k, v):
    s = q @ k.mT
    s = s + torch.rand(s.shape)
    return s.softmax(-1) @ v
