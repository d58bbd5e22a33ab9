# paper/global_sliding_window.py spelled differently: einsum over KV heads and group, additive mask.
import torch
import torch.nn.functional as F


def attention(q, k, v, window: int):
    B, Hq, Sq, D = q.shape
    Hk, Sk = k.shape[1:3]
    qg = q.unflatten(1, (Hk, Hq // Hk))
    i, j = torch.arange(Sq).view(Sq, 1), torch.arange(Sk).view(1, Sk)
    keep = ((j - i).abs() < window + 1) | (i < window * 2) | (j < window * 2)
    mask = torch.where(keep, 0.0, float("-inf"))
    s = torch.einsum("bkgid,bkjd->bkgij", qg, k) * D ** -0.5 + mask
    out = torch.einsum("bkgij,bkjd->bkgid", F.softmax(s, dim=-1), v)
    return out.flatten(1, 2)
