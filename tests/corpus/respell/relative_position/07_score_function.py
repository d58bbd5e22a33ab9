# paper/relative_position.py spelled differently: a score function over b, h, q_idx, kv_idx.
import math
import torch


def modified(score, b, h, q_idx, kv_idx, bias, limit):
    rel = torch.clamp(kv_idx - q_idx, -limit, limit)
    return score + bias[h, rel + limit]


def attention(q, k, v, bias, max_distance: int = 128):
    B, Hq, Sq, D = q.shape
    g = Hq // k.shape[1]
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    b = torch.arange(B)[:, None, None, None]
    h = torch.arange(Hq)[None, :, None, None]
    q_idx = torch.arange(Sq)[None, None, :, None]
    kv_idx = torch.arange(k.shape[2])[None, None, None, :]
    score = q @ k.transpose(-1, -2) * (1.0 / math.sqrt(D))
    return torch.softmax(modified(score, b, h, q_idx, kv_idx, bias, max_distance), -1) @ v
