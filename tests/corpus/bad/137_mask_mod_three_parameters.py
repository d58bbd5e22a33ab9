# expect: line=2
def keep(h, q_idx, kv_idx):
    return q_idx >= kv_idx
