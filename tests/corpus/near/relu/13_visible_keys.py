# A near miss of paper/relu.py: divided by the number of visible keys.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    n = k.size(-2)
    keep = torch.tril(torch.ones(q.size(-2), n, dtype=torch.bool, device=q.device))
    p = torch.relu(s) / keep.sum(-1, keepdim=True)
    return p.masked_fill(~keep, 0.0) @ v
