# expect: kind=limit
def attention(q, k, v):
    s = q @ k.mT
    for a in range(4000):
        for b in range(4000):
            s = s + a * b
    return s.softmax(-1) @ v
