# expect: line=3
def attention(q, k, v):
    return ((q @ k.mT).softmax(-1) @ v).sum(1)
