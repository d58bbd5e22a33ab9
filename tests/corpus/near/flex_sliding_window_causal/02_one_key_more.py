# A near miss of flex/mods.py:sliding_window_causal: window is W + 1.
SLIDING_WINDOW = 1024


def sliding_window_causal(b, h, q_idx, kv_idx):
    causal_mask = q_idx >= kv_idx
    window_mask = q_idx - kv_idx <= SLIDING_WINDOW + 1
    return causal_mask & window_mask
