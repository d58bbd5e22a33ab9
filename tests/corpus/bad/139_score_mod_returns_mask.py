# expect: line=3
def modify(score, b, h, q_idx, kv_idx):
    return q_idx >= kv_idx
