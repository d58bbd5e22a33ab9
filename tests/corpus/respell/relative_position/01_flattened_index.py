# paper/relative_position.py spelled differently: bias gathered by flattened index.
import math
import torch


def attention(q, k, v, bias, max_distance: int = 128):
    B, Hq, Sq, D = q.shape
    Sk = k.size(2)
    g = Hq // k.size(1)
    k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    i, j = torch.arange(Sq)[:, None], torch.arange(Sk)[None, :]
    idx = torch.clamp(j - i, min=-max_distance, max=max_distance) + max_distance
    rows = torch.arange(Hq)[:, None, None] * (2 * max_distance + 1)
    s = torch.einsum("bhid,bhjd->bhij", q, k) / math.sqrt(D)
    s = s + bias.reshape(-1)[rows + idx]
    return torch.einsum("bhij,bhjd->bhid", s.softmax(-1), v)
