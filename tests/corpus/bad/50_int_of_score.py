# expect: line=4 mentions=int
def attention(q, k, v):
    s = q @ k.mT
    n = int(s.sum())
    return (s / n).softmax(-1) @ v
