# expect: line=3 mentions=zero
def attention(q, k, v):
    n = 7 % 0
    return (q @ k.mT + n).softmax(-1) @ v
