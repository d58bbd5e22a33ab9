# expect: kind=syntax line=8 mentions=≤
import torch


def attention(q, k, v):
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    return (q @ k.mT).masked_fill(~(j ≤ i), float("-inf")).softmax(-1) @ v
