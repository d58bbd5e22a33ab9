# A near miss of paper/sigmoid.py: divided by n besides the bias.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    s = s - math.log(k.size(-2))
    i = torch.arange(q.size(-2))
    j = torch.arange(k.size(-2))
    s = s.masked_fill(j[None, :] > i[:, None], float("-inf"))
    return torch.sigmoid(s) @ v / k.size(-2)
