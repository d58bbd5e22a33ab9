# expect: kind=syntax line=3 mentions=*
def attention(q, k, v):
    s = q @ * k.mT
    return s.softmax(-1) @ v
