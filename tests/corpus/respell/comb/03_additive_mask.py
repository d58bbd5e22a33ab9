# paper/comb.py spelled differently: bias and mask added together.
import math
import torch


def attention(q, k, v, prefix: int, cap: float):
    B, Hk, Sk, D = k.shape
    G = q.size(1) // Hk
    k = k[:, :, None].expand(B, Hk, G, Sk, D).reshape(B, Hk * G, Sk, D)
    v = v[:, :, None].expand(B, Hk, G, Sk, v.size(3)).reshape(B, Hk * G, Sk, v.size(3))
    keep = torch.ones(q.size(2), Sk, dtype=torch.bool).tril() | (torch.arange(Sk) < prefix)
    bias = torch.where(keep, -math.log(Sk), -math.inf)
    s = torch.matmul(q, k.mT) / math.sqrt(D)
    return torch.sigmoid((s / cap).tanh() * cap + bias).matmul(v)
