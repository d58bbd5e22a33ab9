# paper/comb.py spelled differently: masked before the bias is subtracted.
import math
import torch


def attention(q, k, v, prefix: int, cap: float = 50.0):
    g, c = q.size(1) // k.size(1), q.size(-1) ** -0.25
    k, v = (torch.repeat_interleave(t, g, dim=1) for t in (k, v))
    s = cap * torch.tanh(((q * c) @ (k * c).transpose(2, 3)) / cap)
    d = torch.arange(q.size(2))[:, None] - torch.arange(k.size(2))[None, :]
    s = s.masked_fill((d < 0) & ~(torch.arange(k.size(2)) < prefix), -torch.inf)
    return torch.sigmoid(s - math.log(k.size(2))) @ v
