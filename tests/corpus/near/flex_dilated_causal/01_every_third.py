# A near miss of flex/mods.py:dilated_causal: step 3.
def dilated_causal(b, h, q_idx, kv_idx):
    return (q_idx >= kv_idx) & ((q_idx - kv_idx) % 3 == 0)
