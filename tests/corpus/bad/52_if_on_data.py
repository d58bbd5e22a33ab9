# expect: line=4
def attention(q, k, v):
    s = q @ k.mT
    if s.sum() > 0:
        s = -s
    return s.softmax(-1) @ v
