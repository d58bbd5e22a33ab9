# paper/sigmoid.py spelled differently: a weight function and heads picked by index.
import math
import torch


def weight(score, q_idx, kv_idx, n):
    return torch.where(q_idx >= kv_idx, torch.sigmoid(score - math.log(n)), torch.zeros_like(score))


def attention(q, k, v):
    pick = lambda t: t[:, torch.arange(q.size(1)) // (q.size(1) // k.size(1))]
    s = torch.matmul(q * q.size(-1) ** -0.5, pick(k).mT)
    i, j = torch.arange(q.size(2)).view(-1, 1), torch.arange(k.size(2)).view(1, -1)
    return torch.matmul(weight(s, i, j, k.size(2)), pick(v))
