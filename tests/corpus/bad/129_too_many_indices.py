# expect: kind=shape line=3 mentions=ind
def attention(q, k, v):
    return (q @ k.mT + q[0, 0, 0, 0, 0]).softmax(-1) @ v
