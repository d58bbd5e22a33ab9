# paper/prefix_lm.py spelled differently: numerator times V first, divided by the row sum afterwards.
import math
import torch


def attention(q, k, v, prefix: int):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    s = torch.matmul(q / math.sqrt(q.size(-1)), k.transpose(-1, -2))
    i = torch.arange(s.size(-2))[:, None]
    j = torch.arange(s.size(-1))[None, :]
    s = s.masked_fill(~((i - j >= 0) | (prefix > j)), float("-inf"))
    e = (s - s.max(dim=-1, keepdim=True).values).exp()
    return (e @ v) / e.sum(-1, keepdim=True)
