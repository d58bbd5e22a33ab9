# paper/sigmoid.py spelled differently: batch and heads folded for bmm.
import math
import torch


def attention(q, k, v):
    B, Hq, Sq, D = q.shape
    g, Sk = Hq // k.size(1), k.size(2)
    k = k.repeat_interleave(g, 1).reshape(B * Hq, Sk, D)
    v = v.repeat_interleave(g, 1).reshape(B * Hq, Sk, -1)
    s = torch.bmm(q.reshape(B * Hq, Sq, D), k.transpose(1, 2)) / D ** 0.5
    s = s - math.log(Sk)
    s = s.masked_fill(torch.triu(torch.ones(Sq, Sk), diagonal=1) == 1, float("-inf"))
    return torch.bmm(torch.sigmoid(s), v).reshape(B, Hq, Sq, v.size(-1))
