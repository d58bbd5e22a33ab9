# paper/comb.py spelled differently: queries grouped by KV head, method sigmoid.
import math
import torch


def attention(q, k, v, prefix: int, cap: float = 50.0):
    b, hq, sq, d = q.shape
    hk, sk = k.shape[1], k.shape[2]
    s = q.view(b, hk, hq // hk, sq, d) @ k.unsqueeze(2).transpose(-1, -2)
    s = cap * torch.tanh(s / (d ** 0.5 * cap)) - math.log(sk)
    i, j = torch.arange(sq).unsqueeze(1), torch.arange(sk).unsqueeze(0)
    p = s.masked_fill(((j <= i) | (prefix > j)).logical_not(), float("-inf")).sigmoid()
    return (p @ v.unsqueeze(2)).reshape(b, hq, sq, v.size(-1))
