# expect: line=4 mentions=item
def attention(q, k, v):
    s = q @ k.mT
    return (s / s.max().item()).softmax(-1) @ v
