# expect: line=4 mentions=while
def attention(q, k, v):
    s = q @ k.mT
    while True:
        s = s + 1
    return s.softmax(-1) @ v
