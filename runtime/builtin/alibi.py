# Causal attention with a slope a head times the distance (ALiBi); the slopes are an operand [Hq].
import math
import torch


def attention(q, k, v, slopes: "f32[Hq]"):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    row = torch.arange(q.size(2), device=q.device)[:, None] + (k.size(2) - q.size(2))
    col = torch.arange(k.size(2), device=q.device)[None, :]
    scores = scores - slopes[:, None, None] * (row - col)
    return torch.softmax(scores.masked_fill(col > row, float("-inf")), dim=-1) @ v
