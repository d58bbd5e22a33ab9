# expect: line=6 mentions=getattr
import torch


def attention(q, k, v):
    f = getattr(torch, "soft" + "max")
    return f(q @ k.mT, -1) @ v
