# A near miss of flex/mods.py:prefix_lm: and in place of or.
PREFIX = 256


def prefix_lm(b, h, q_idx, kv_idx):
    return (kv_idx < PREFIX) & (q_idx >= kv_idx)
