# expect: kind=name mentions=softcap
def modify(score, b, h, q_idx, kv_idx):
    return score * 0.5
