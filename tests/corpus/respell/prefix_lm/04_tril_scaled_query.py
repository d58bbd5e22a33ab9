# paper/prefix_lm.py spelled differently: scale on the query, tril of ones, -torch.inf.
import torch


def attention(q, k, v, prefix: int):
    n, m = q.shape[-2], k.shape[-2]
    group = q.shape[1] // k.shape[1]
    lower = torch.ones(n, m, dtype=torch.bool).tril()
    keep = torch.logical_or(lower, torch.arange(m) < prefix)
    q = q * q.shape[-1] ** -0.5
    k = k.repeat_interleave(group, 1)
    v = v.repeat_interleave(group, 1)
    w = (q @ k.mT).masked_fill(~keep, -torch.inf)
    return w.softmax(dim=-1) @ v
