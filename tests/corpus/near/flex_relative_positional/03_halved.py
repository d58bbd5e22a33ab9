# A near miss of flex/mods.py:relative_positional: half the distance.
def relative_positional(score, b, h, q_idx, kv_idx):
    return score + (q_idx - kv_idx) / 2
