# paper/relative_position.py spelled differently: bias by torch.gather along its second axis.
import math
import torch


def attention(q, k, v, table, clip: int):
    B, Hk, Sk, D = k.shape
    Hq, Sq = q.shape[1], q.shape[2]
    G = Hq // Hk
    k = k[:, :, None].expand(B, Hk, G, Sk, D).reshape(B, Hq, Sk, D)
    v = v[:, :, None].expand(B, Hk, G, Sk, v.size(3)).reshape(B, Hq, Sk, v.size(3))
    rel = torch.arange(Sk).view(1, Sk) - torch.arange(Sq).view(Sq, 1)
    idx = (rel.clamp(-clip, clip) + clip).reshape(1, Sq * Sk).expand(Hq, Sq * Sk)
    bias = torch.gather(table, 1, idx).view(Hq, Sq, Sk)
    s = (q * D ** -0.5) @ k.transpose(2, 3) + bias[None]
    return torch.softmax(s, dim=-1) @ v
