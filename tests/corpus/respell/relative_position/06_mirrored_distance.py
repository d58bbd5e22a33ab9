# paper/relative_position.py spelled differently: distance query minus key, looked up as max - distance.
import torch


def attention(q, k, v, bias, max_distance: int = 128):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    back = torch.arange(q.size(2))[:, None] - torch.arange(k.size(2))[None, :]
    idx = max_distance - back.clamp(-max_distance, max_distance)
    c = q.size(-1) ** -0.25
    s = torch.einsum("bhic,bhjc->bhij", q * c, k * c) + bias[:, idx].unsqueeze(0)
    return torch.einsum("bhij,bhjd->bhid", torch.softmax(s, -1), v)
