# paper/relative_position.py spelled differently: clipping by minimum and maximum, index_select, softmax by hand.
import math
import torch


def attention(q, k, v, bias, max_distance: int = 64):
    Hq, Sq, Sk = q.size(1), q.size(2), k.size(2)
    g = Hq // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    rel = torch.arange(Sk).unsqueeze(0) - torch.arange(Sq).unsqueeze(1)
    limit = torch.full_like(rel, 1) * max_distance
    rel = torch.minimum(torch.maximum(rel, -limit), limit)
    picked = bias.index_select(1, (rel + max_distance).flatten()).view(Hq, Sq, Sk)
    s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)) + picked
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v
