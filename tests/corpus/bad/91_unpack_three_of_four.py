# expect: line=3 mentions=unpack
def attention(q, k, v):
    H, S, D = q.shape
    return (q @ k.mT / D).softmax(-1) @ v
