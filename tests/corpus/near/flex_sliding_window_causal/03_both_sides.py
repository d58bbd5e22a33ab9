# A near miss of flex/mods.py:sliding_window_causal: window on both sides.
SLIDING_WINDOW = 1024


def sliding_window_causal(b, h, q_idx, kv_idx):
    window_mask = (q_idx - kv_idx).abs() <= SLIDING_WINDOW
    return window_mask
