# A near miss of paper/relu.py: divided by the number of queries.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    n = q.size(-2)
    keep = torch.tril(torch.ones(q.size(-2), k.size(-2), dtype=torch.bool, device=q.device))
    p = torch.relu(s) / n
    return p.masked_fill(~keep, 0.0) @ v
