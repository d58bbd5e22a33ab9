# A near miss of flex/mods.py:alibi: bias of the other sign.
import torch

alibi_slopes = torch.empty(32)         # float [Hq]


def alibi(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx) * alibi_slopes[h]
