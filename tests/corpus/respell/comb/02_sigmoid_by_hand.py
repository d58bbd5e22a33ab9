# paper/comb.py spelled differently: sigmoid as 1 / (1 + exp(-x)), hidden rather than kept.
import math
import torch


def attention(q, k, v, n_prefix, softcap=30.0):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    x = softcap * torch.tanh(s / softcap) - math.log(k.size(-2))
    p = 1 / (1 + torch.exp(-x))
    row, col = torch.arange(q.size(-2)).view(-1, 1), torch.arange(k.size(-2))
    return p.masked_fill((col > row) & (col >= n_prefix), 0.0) @ v
