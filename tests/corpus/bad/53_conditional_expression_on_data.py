# expect: line=4
def attention(q, k, v):
    s = q @ k.mT
    s = s if s[0, 0, 0, 0] > 0 else -s
    return s.softmax(-1) @ v
