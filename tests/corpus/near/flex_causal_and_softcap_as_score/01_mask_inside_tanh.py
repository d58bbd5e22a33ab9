# A near miss of flex/mods.py:causal_and_softcap_as_score: mask inside the tanh: a masked score is -cap.
import torch

SOFTCAP = 20.0


def causal_and_softcap_as_score(score, b, h, q_idx, kv_idx):
    masked = torch.where(q_idx >= kv_idx, score, -float("inf"))
    return SOFTCAP * torch.tanh(masked / SOFTCAP)
