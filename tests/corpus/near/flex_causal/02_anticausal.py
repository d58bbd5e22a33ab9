# A near miss of flex/mods.py:causal: keys from itself on.
def causal(b, h, q_idx, kv_idx):
    return q_idx <= kv_idx
