# A near miss of flex/mods.py:causal: a token does not see itself.
def causal(b, h, q_idx, kv_idx):
    return q_idx > kv_idx
