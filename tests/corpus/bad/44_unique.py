# expect: line=6 mentions=unique
import torch


def attention(q, k, v, doc):
    n = torch.unique(doc)
    return (q @ k.mT + n.size(0)).softmax(-1) @ v
