# expect: kind=syntax line=4 mentions=indent
def attention(q, k, v):
        s = q @ k.mT
    return s.softmax(-1) @ v
