# expect: kind=syntax line=4 mentions=assign
def attention(q, k, v):
    s = q @ k.mT
    s.softmax(-1) = s
    return s @ v
