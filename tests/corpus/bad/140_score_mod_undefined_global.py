# expect: kind=name line=3 mentions=slopes
def modify(score, b, h, q_idx, kv_idx):
    return score + slopes[h] * (kv_idx - q_idx)
