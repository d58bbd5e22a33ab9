# expect: line=3
def modify(score, b, h, q_idx, kv_idx):
    if q_idx >= kv_idx:
        return score
    return -float("inf")
