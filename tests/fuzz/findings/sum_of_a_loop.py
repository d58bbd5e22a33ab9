# expect: kind=limit line=4 mentions=range
def attention(q, k, v):
    s = q @ k.mT
    for n in range(10 ** 4):
        s = s + n
    return s.softmax(-1) @ v
