# A near miss of flex/mods.py:head_dependent: score times 0.25.
import torch


def head_dependent(score, b, h, q_idx, kv_idx):
    return torch.where(h % 2 == 0, score + (q_idx - kv_idx), score * 0.25)
