# expect: kind=limit line=3
def attention(q, k, v):
    k = k.repeat_interleave(10 ** 12, dim=2)
    v = v.repeat_interleave(10 ** 12, dim=2)
    return (q @ k.mT).softmax(-1) @ v
