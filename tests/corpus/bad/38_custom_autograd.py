# expect: kind=unsupported line=7 mentions=autograd
import torch


def attention(q, k, v):
    s = q @ k.mT
    (g,) = torch.autograd.grad(s.sum(), q)
    return s.softmax(-1) @ v + g
