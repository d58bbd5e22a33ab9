# paper/relu.py spelled differently: an additive triu of -inf, relu as a method.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = (t.repeat_interleave(g, 1) for t in (k, v))
    n = k.size(2)
    future = torch.full((q.size(2), n), float("-inf")).triu(diagonal=1)
    s = q @ k.transpose(-2, -1) * (1 / math.sqrt(q.size(-1))) + future
    return s.relu().div(n) @ v
