# paper/relative_position.py spelled differently: clipping by where, transposed scores.
import torch


def attention(q, k, v, bias, max_distance: int = 128):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    rel = torch.arange(k.size(2))[:, None] - torch.arange(q.size(2))[None, :]
    rel = torch.where(rel > max_distance, max_distance, rel)
    rel = torch.where(rel < -max_distance, -max_distance, rel)
    st = k @ q.transpose(-1, -2) / q.size(-1) ** 0.5 + bias[:, rel + max_distance]
    return torch.softmax(st, dim=-2).transpose(-1, -2) @ v
