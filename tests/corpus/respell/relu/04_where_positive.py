# paper/relu.py spelled differently: relu by where, negated comparison.
import math
import torch


def attention(query, key, value):
    n = query.size(1) // key.size(1)
    key, value = key.repeat_interleave(n, dim=1), value.repeat_interleave(n, dim=1)
    s = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(query.size(3))
    p = torch.where(s > 0, s, torch.zeros_like(s)) * (1.0 / key.size(2))
    i = torch.arange(query.size(2)).view(-1, 1)
    j = torch.arange(key.size(2)).view(1, -1)
    p = p.masked_fill(torch.logical_not(i >= j), 0.0)
    return torch.matmul(p, value)
