# paper/causal_blockwise.py spelled differently: the last block let in by masked_fill on the mask.
import torch


def attention(q, k, v, doc, last: int):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = (q @ k.transpose(-1, -2)) * (1 / q.size(-1) ** 0.5)
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    same = doc[:, None] == doc[None, :]
    tail = (doc == last)[:, None] & (doc != last)[None, :]
    keep = (same & (i >= j)).masked_fill(tail, True)
    s = torch.where(keep, s, float("-inf"))
    return s.softmax(-1) @ v
