# A near miss of flex/mods.py:head_dependent: every third head.
import torch


def head_dependent(score, b, h, q_idx, kv_idx):
    return torch.where(h % 3 == 0, score + (q_idx - kv_idx), score * 0.5)
