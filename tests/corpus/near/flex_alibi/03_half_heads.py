# A near miss of flex/mods.py:alibi: two heads share a slope.
import torch

alibi_slopes = torch.empty(32)         # float [Hq]


def alibi(score, b, h, q_idx, kv_idx):
    return score + (kv_idx - q_idx) * alibi_slopes[h // 2]
