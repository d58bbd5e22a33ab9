# expect: line=4 mentions=float
def attention(q, k, v):
    s = q @ k.mT
    return (s / float(s.max())).softmax(-1) @ v
