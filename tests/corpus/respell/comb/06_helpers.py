# paper/comb.py spelled differently: helpers for cap, mask and weight; heads picked by index.
import math
import torch


def softcap(x, limit):
    return limit * torch.tanh(x / limit)


def prefix_mask(q_idx, kv_idx, prefix):
    return torch.logical_or(q_idx >= kv_idx, kv_idx < prefix)


def attention(q, k, v, prefix: int, cap: float = 50.0):
    n = k.size(2)
    heads = torch.arange(q.size(1)) // (q.size(1) // k.size(1))
    s = softcap(q @ k[:, heads].mT * q.size(-1) ** -0.5, limit=cap)
    keep = prefix_mask(torch.arange(q.size(2))[:, None], torch.arange(n)[None, :], prefix)
    p = torch.where(keep, torch.sigmoid(s - math.log(n)), torch.zeros_like(s))
    return p @ v[:, heads]
