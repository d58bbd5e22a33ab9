# paper/share_question.py spelled differently: -inf above the diagonal, numerator before normaliser.
import math
import torch


def attention(q, k, v, doc):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    n = q.size(2)
    future = torch.ones(n, n).triu(diagonal=1).bool()
    same = doc.reshape(-1, 1) == doc
    keep = (same & ~future) | ((doc == 0) & (doc != 0).reshape(-1, 1))
    s = (q / math.sqrt(q.size(-1))) @ k.mT
    s = s + torch.zeros(n, n).masked_fill(~keep, float("-inf"))
    e = (s - s.amax(dim=-1, keepdim=True)).exp()
    return e @ v / e.sum(dim=-1, keepdim=True)
