# A near miss of flex/mods.py:head_dependent: odd heads instead of even.
import torch


def head_dependent(score, b, h, q_idx, kv_idx):
    return torch.where(h % 2 == 1, score + (q_idx - kv_idx), score * 0.5)
