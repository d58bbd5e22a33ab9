# paper/relu.py spelled differently: helpers, D**-0.25 on both, heads picked by index.
import torch


def causal(n, m):
    return torch.arange(m)[None, :] < torch.arange(n)[:, None] + 1


def weigh(s, keep, n):
    return torch.where(keep, torch.clamp(s, min=0) / n, torch.zeros_like(s))


def attention(q, k, v):
    heads = torch.arange(q.size(1)) // (q.size(1) // k.size(1))
    c = q.size(3) ** -0.25
    s = (q * c) @ (k[:, heads] * c).transpose(-1, -2)
    return weigh(s, causal(q.size(2), k.size(2)), k.size(2)) @ v[:, heads]
