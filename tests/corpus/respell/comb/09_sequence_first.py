# paper/comb.py spelled differently: sequence-first layout, lambda, keyword arguments.
import math
import torch


def attention(query, key, value, prefix: int, cap: float = 50.0):
    group = query.size(1) // key.size(1)
    lay = lambda t, n: t.permute(0, 2, 1, 3).repeat_interleave(repeats=n, dim=2)
    s = torch.einsum("bihd,bjhd->bhij", lay(query, 1), lay(key, group))
    s = cap * torch.tanh(s / math.sqrt(query.size(-1)) / cap)
    i = torch.arange(0, query.size(2)).reshape(-1, 1)
    j = torch.arange(0, key.size(2)).reshape(1, -1)
    s = torch.where(torch.logical_and(j > i, j >= prefix), -torch.inf, s - math.log(key.size(2)))
    return torch.einsum("bhij,bjhd->bihd", torch.sigmoid(s), lay(value, group)).transpose(1, 2)
