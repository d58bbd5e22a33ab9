# expect: kind=limit line=3
def attention(q, k, v):
    n = 9 ** 9 ** 9 ** 9
    return (q @ k.mT + n).softmax(-1) @ v
