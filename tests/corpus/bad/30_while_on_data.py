# expect: kind=unsupported line=4 mentions=while
def attention(q, k, v):
    s = q @ k.mT
    while s.max() > 1:
        s = s / 2
    return s.softmax(-1) @ v
