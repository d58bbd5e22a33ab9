# A near miss of paper/sigmoid.py: masked scores are 0: they weigh a half.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    s = s - math.log(k.size(-2))
    i = torch.arange(q.size(-2))
    j = torch.arange(k.size(-2))
    s = s.masked_fill(j[None, :] > i[:, None], 0.0)
    return torch.sigmoid(s) @ v
