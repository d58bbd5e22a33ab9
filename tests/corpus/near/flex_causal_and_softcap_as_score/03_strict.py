# A near miss of flex/mods.py:causal_and_softcap_as_score: a token does not see itself.
import torch

SOFTCAP = 20.0


def causal_and_softcap_as_score(score, b, h, q_idx, kv_idx):
    capped = SOFTCAP * torch.tanh(score / SOFTCAP)
    return torch.where(q_idx > kv_idx, capped, -float("inf"))
