# expect: line=4 mentions=set_
def attention(q, k, v):
    s = q @ k.mT
    s.set_(s)
    return s.softmax(-1) @ v
