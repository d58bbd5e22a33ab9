# Causal attention within documents of packed sequences; the document of each position is an operand [S].
import math
import torch


def attention(q, k, v, document: "i32[S]"):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    position = torch.arange(q.size(2), device=q.device)
    keep = (document[:, None] == document[None, :]) & (position[None, :] <= position[:, None])
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v
