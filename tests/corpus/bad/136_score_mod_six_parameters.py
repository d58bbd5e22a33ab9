# expect: line=2
def modify(score, b, h, q_idx, kv_idx, extra):
    return score + extra
