# A near miss of flex/mods.py:relative_positional: distance of the other sign.
def relative_positional(score, b, h, q_idx, kv_idx):
    return score + (kv_idx - q_idx)
