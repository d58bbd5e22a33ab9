# A near miss of flex/mods.py:dilated_causal: a token does not see itself.
def dilated_causal(b, h, q_idx, kv_idx):
    return (q_idx > kv_idx) & ((q_idx - kv_idx) % 4 == 0)
