"""A sliding window, and a few first keys that every row sees."""
import torch as t
from math import sqrt, inf


def seen(i, j, *, window: int = 256, sinks: int = 4):
    near = (i - j < window) & (j <= i)
    return near | (j < sinks)


def attention(q, k, v, window=256, sinks=4):
    *batch, S, D = q.shape
    i, j = t.arange(S).view(-1, 1), t.arange(k.size(-2)).view(1, -1)
    keep = seen(i, j, window=window, sinks=sinks)
    s = t.einsum("bhid,bhjd->bhij", q, k) * (1.0 / sqrt(D))
    p = t.where(keep, s, -inf).softmax(-1)
    return t.einsum("bhij,bhjd->bhid", p.nan_to_num(0.0), v)
