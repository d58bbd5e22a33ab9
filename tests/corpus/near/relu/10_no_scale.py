# A near miss of paper/relu.py: scale missing.
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2)
    n = k.size(-2)
    keep = torch.tril(torch.ones(q.size(-2), n, dtype=torch.bool, device=q.device))
    p = torch.relu(s) / n
    return p.masked_fill(~keep, 0.0) @ v
