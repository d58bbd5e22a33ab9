# paper/sigmoid.py spelled differently: sigmoid as 1 / (1 + exp(-x)).
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    x = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1)) - math.log(k.size(-2))
    p = 1.0 / (1.0 + torch.exp(-x))
    row = torch.arange(q.size(-2)).unsqueeze(-1)
    col = torch.arange(k.size(-2))
    return p.masked_fill(~(col <= row), 0.0) @ v
