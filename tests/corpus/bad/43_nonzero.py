# expect: line=6 mentions=nonzero
import torch


def attention(q, k, v, doc):
    kept = torch.nonzero(doc == 0)[:, 0]
    return (q @ k[:, :, kept].mT).softmax(-1) @ v[:, :, kept]
