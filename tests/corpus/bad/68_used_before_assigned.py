# expect: kind=name line=3 mentions=p
def attention(q, k, v):
    out = p @ v
    p = (q @ k.mT).softmax(-1)
    return out
