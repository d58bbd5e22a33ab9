# Prefix LM: the first `prefix` keys are seen by every query; after them attention is causal.
# q [B, Hq, Sq, D]; k, v [B, Hk, Sk, D]; prefix: how many keys, given at each launch.
import math
import torch


def attention(q, k, v, prefix: int):
    group = q.size(1) // k.size(1)
    k = k.repeat_interleave(group, dim=1)
    v = v.repeat_interleave(group, dim=1)
    scores = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1))
    row = torch.arange(q.size(-2), device=q.device)[:, None]
    col = torch.arange(k.size(-2), device=q.device)[None, :]
    keep = (col < prefix) | (col <= row)
    return torch.softmax(scores.masked_fill(~keep, float("-inf")), dim=-1) @ v
