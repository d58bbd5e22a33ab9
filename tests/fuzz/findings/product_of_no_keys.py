# expect: kind=unsupported line=5 mentions=del
def attention(q, k, v):
    s = q @ k.mT
    p = s.softmax(-1)
    del p
    return s @ v
