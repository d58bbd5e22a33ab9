# paper/relative_position.py spelled differently: sequence-first layout, numerator times V before the normaliser.
import torch


def attention(query, key, value, bias, max_distance: int = 128):
    group = query.size(1) // key.size(1)
    q = query.permute(0, 2, 1, 3)
    k = key.permute(0, 2, 1, 3).repeat_interleave(group, dim=2)
    v = value.permute(0, 2, 1, 3).repeat_interleave(group, dim=2)
    s = torch.einsum("bihd,bjhd->bhij", q, k) / query.size(-1) ** 0.5
    rel = torch.arange(key.size(2)) - torch.arange(query.size(2)).unsqueeze(1)
    s = s + bias[None, :, max_distance + rel.clamp(max=max_distance, min=-max_distance)]
    e = torch.exp(s - s.amax(dim=-1, keepdim=True))
    out = torch.einsum("bhij,bjhd->bhid", e, v) / e.sum(dim=-1, keepdim=True)
    return out
