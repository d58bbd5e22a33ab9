# A near miss of flex/mods.py:alibi: distance both ways.
import torch

alibi_slopes = torch.empty(32)         # float [Hq]


def alibi(score, b, h, q_idx, kv_idx):
    return score + -(kv_idx - q_idx).abs() * alibi_slopes[h]
