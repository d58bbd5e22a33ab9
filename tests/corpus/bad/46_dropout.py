# expect: line=7 mentions=dropout
import torch.nn.functional as F


def attention(q, k, v):
    p = (q @ k.mT).softmax(-1)
    return F.dropout(p, 0.1) @ v
