# expect: line=3
def keep(b, h, q_idx, kv_idx):
    return (q_idx - kv_idx) * 0.5
