# expect: line=6 mentions=fft
import torch


def attention(q, k, v):
    return torch.fft.fft(q @ k.mT).real.softmax(-1) @ v
