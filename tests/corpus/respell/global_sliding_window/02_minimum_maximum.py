# paper/global_sliding_window.py spelled differently: distance as maximum - minimum, one comparison for both global tests.
import math
import torch


def attention(q, k, v, w: int):
    Hk = k.shape[1]
    G = q.shape[1] // Hk
    k = k[:, :, None].expand(-1, -1, G, -1, -1).flatten(1, 2)
    v = v[:, :, None].expand(-1, -1, G, -1, -1).flatten(1, 2)
    i = torch.arange(q.shape[2])[:, None]
    j = torch.arange(k.shape[2])[None, :]
    lo, hi = torch.minimum(i, j), torch.maximum(i, j)
    keep = (hi - lo <= w) | (lo < w + w)
    s = torch.matmul(q, k.mT) / math.sqrt(q.shape[-1])
    s = torch.where(keep, s, -math.inf)
    return torch.matmul(torch.softmax(s, dim=-1), v)
