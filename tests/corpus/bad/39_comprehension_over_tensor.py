# expect: kind=unsupported line=6
import torch


def attention(q, k, v):
    rows = [torch.softmax(row, -1) for row in q @ k.mT]
    return torch.stack(rows) @ v
