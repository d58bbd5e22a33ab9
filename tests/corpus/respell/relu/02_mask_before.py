# paper/relu.py spelled differently: -inf before the relu.
import math
import torch
import torch.nn.functional as F


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    row = torch.arange(q.size(-2)).unsqueeze(-1)
    col = torch.arange(k.size(-2))
    s = s.masked_fill(col > row, float("-inf"))
    return (F.relu(s) / k.size(-2)) @ v
