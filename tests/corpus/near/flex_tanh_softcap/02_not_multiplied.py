# A near miss of flex/mods.py:tanh_softcap: tanh(score / cap).
import torch

SOFTCAP = 20.0


def tanh_softcap(score, b, h, q_idx, kv_idx):
    return torch.tanh(score / SOFTCAP)
