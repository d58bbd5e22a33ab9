# expect: line=4 mentions=range
def attention(q, k, v):
    s = q @ k.mT
    for n in range(0, 4, 0):
        s = s + n
    return s.softmax(-1) @ v
