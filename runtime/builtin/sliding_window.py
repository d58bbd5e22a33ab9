# Causal attention to the last `window` keys, its own included.
import math
import torch


def attention(q, k, v, window: int = 4096):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    row = torch.arange(q.size(2), device=q.device)[:, None] + (k.size(2) - q.size(2))
    col = torch.arange(k.size(2), device=q.device)[None, :]
    keep = (col <= row) & (row - col < window)
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v
