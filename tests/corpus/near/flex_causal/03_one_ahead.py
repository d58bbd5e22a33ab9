# A near miss of flex/mods.py:causal: one key ahead is seen.
def causal(b, h, q_idx, kv_idx):
    return q_idx + 1 >= kv_idx
