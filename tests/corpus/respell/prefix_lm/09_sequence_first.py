# paper/prefix_lm.py spelled differently: operands transposed to sequence first, keyword arguments, lambdas.
import torch


def attention(q, k, v, prefix: int):
    group = q.size(1) // k.size(1)
    seq_first = lambda t: t.permute(0, 2, 1, 3)
    spread = lambda t: t.repeat_interleave(repeats=group, dim=2)
    qs, ks, vs = seq_first(q), spread(seq_first(k)), spread(seq_first(v))
    scores = torch.einsum("bihd,bjhd->bhij", qs, ks).div(q.size(-1) ** 0.5)
    i = torch.arange(0, q.size(2))
    j = torch.arange(k.size(2))
    ok = i.unsqueeze(1).ge(j) | j.lt(prefix)
    scores = scores.masked_fill(mask=~ok, value=float("-inf"))
    out = torch.einsum("bhij,bjhd->bihd", scores.softmax(dim=-1), vs)
    return out.transpose(1, 2)
