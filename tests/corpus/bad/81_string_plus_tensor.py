# expect: kind=type line=3
def attention(q, k, v):
    return (q @ k.mT + "bias").softmax(-1) @ v
