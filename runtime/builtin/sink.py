# Causal attention with a learned sink a head, a score without a value in each row's softmax; an operand [Hq].
import math
import torch


def attention(q, k, v, sink: "f32[Hq]"):
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, dim=1), v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    row = torch.arange(q.size(2), device=q.device)[:, None] + (k.size(2) - q.size(2))
    col = torch.arange(k.size(2), device=q.device)[None, :]
    scores = scores.masked_fill(col > row, float("-inf"))
    extra = sink[None, :, None, None].expand(q.size(0), q.size(1), q.size(2), 1)
    weights = torch.softmax(torch.cat([scores, extra], dim=-1), dim=-1)[..., : k.size(2)]
    return weights @ v
