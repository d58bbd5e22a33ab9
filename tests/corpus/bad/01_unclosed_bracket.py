# expect: kind=syntax line=6 mentions=(
import torch


def attention(q, k, v):
    s = torch.softmax(q @ k.transpose(-1, -2), dim=-1
    return s @ v
