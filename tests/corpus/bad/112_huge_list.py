# expect: kind=limit line=3
def attention(q, k, v):
    n = len([0] * 10 ** 12)
    return (q @ k.mT / n).softmax(-1) @ v
