# paper/relu.py spelled differently: the number of keys divided out of the output.
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.mT * q.size(-1) ** -0.5
    keep = torch.tril(torch.ones(q.size(2), k.size(2))).bool()
    p = torch.relu(s).masked_fill(~keep, 0.0)
    return (p @ v) / k.size(2)
