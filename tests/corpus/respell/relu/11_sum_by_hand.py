# paper/relu.py spelled differently: products summed by hand, mask as a select on the index difference.
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = (q.unsqueeze(3) * k.unsqueeze(2)).sum(dim=-1) / q.size(-1) ** 0.5
    d = torch.arange(q.size(2))[:, None] - torch.arange(k.size(2))[None, :]
    p = torch.where(d < 0, 0.0, s.relu()) / k.size(2)
    return (p.unsqueeze(-1) * v.unsqueeze(2)).sum(dim=3)
