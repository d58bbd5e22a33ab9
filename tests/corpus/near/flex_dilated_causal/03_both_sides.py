# A near miss of flex/mods.py:dilated_causal: not causal.
def dilated_causal(b, h, q_idx, kv_idx):
    return ((q_idx - kv_idx) % 4 == 0)
