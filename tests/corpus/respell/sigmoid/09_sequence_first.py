# paper/sigmoid.py spelled differently: sequence-first layout, keyword arguments.
import math
import torch
import torch.nn.functional as F


def attention(q, k, v):
    group = q.size(1) // k.size(1)
    qs = q.permute(0, 2, 1, 3)
    ks = k.permute(0, 2, 1, 3).repeat_interleave(repeats=group, dim=2)
    vs = v.permute(0, 2, 1, 3).repeat_interleave(repeats=group, dim=2)
    s = torch.einsum("bihd,bjhd->bhij", qs, ks) * (1 / math.sqrt(q.size(-1)))
    s = torch.sub(s, math.log(s.size(-1)))
    keep = torch.ge(torch.arange(s.size(-2)).unsqueeze(1), torch.arange(s.size(-1)).unsqueeze(0))
    s = s.masked_fill(mask=~keep, value=float("-inf"))
    return torch.einsum("bhij,bjhd->bihd", F.sigmoid(s), vs).permute(0, 2, 1, 3)
