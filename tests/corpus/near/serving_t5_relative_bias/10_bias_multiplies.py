# A near miss of serving/t5_relative_bias.py: bias multiplies the score.
import math
import torch


def t5_bucket(rel, bidirectional, num_buckets, max_distance):
    ret = torch.zeros_like(rel)
    n = num_buckets
    if bidirectional:
        n = n // 2
        ret = ret + (rel > 0).long() * n
        d = rel.abs()
    else:
        d = (-rel).clamp(min=0)
    exact = n // 2
    small = d < exact
    big = exact + (torch.log(d.clamp(min=1).float() / exact) / math.log(max_distance / exact)
                   * (n - exact)).long()
    big = big.clamp(max=n - 1)
    return ret + torch.where(small, d, big)


def attention(q, k, v, bias_table, bidirectional=True, num_buckets=32, max_distance=128):
    B, H, Sq, D = q.shape
    Sk = k.shape[2]
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), k.float())
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq if not bidirectional else 0)
    ka = torch.arange(Sk, device=q.device)[None, :]
    bk = t5_bucket(ka - qa, bidirectional, num_buckets, max_distance)
    s = s * bias_table.float()[bk].permute(2, 0, 1)[None]
    if not bidirectional:
        s = s.masked_fill(ka > qa, float("-inf"))
    p = torch.softmax(s, dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, v.float()).to(q.dtype)
