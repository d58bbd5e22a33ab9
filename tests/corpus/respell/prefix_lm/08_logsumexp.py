# paper/prefix_lm.py spelled differently: weights as exp(s - logsumexp(s)).
import math
import torch


def attention(q, k, v, prefix: int):
    g = q.size(1) // k.size(1)
    k = k.unsqueeze(2).repeat(1, 1, g, 1, 1).flatten(1, 2)
    v = v.unsqueeze(2).repeat(1, 1, g, 1, 1).flatten(1, 2)
    s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    row = torch.arange(q.size(-2)).unsqueeze(-1)
    col = torch.arange(k.size(-2))
    s = s.masked_fill(torch.logical_and(col > row, col >= prefix), float("-inf"))
    lse = torch.logsumexp(s, dim=-1, keepdim=True)
    return torch.exp(s - lse) @ v
