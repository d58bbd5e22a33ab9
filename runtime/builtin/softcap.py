# Causal attention whose scores pass through cap * tanh(score / cap), as in Gemma 2.
import math
import torch


def attention(q, k, v, cap: float = 50.0):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    scores = cap * torch.tanh(scores / cap)
    row = torch.arange(q.size(2), device=q.device)[:, None] + (k.size(2) - q.size(2))
    col = torch.arange(k.size(2), device=q.device)[None, :]
    return torch.softmax(scores.masked_fill(col > row, float("-inf")), dim=-1) @ v
