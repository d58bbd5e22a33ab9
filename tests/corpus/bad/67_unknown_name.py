# expect: kind=name line=3 mentions=scale
def attention(q, k, v):
    return (q @ k.mT * scale).softmax(-1) @ v
