# expect: line=5 mentions=s
def attention(q, k, v, masked=False):
    if masked:
        s = q @ k.mT
    return s.softmax(-1) @ v
