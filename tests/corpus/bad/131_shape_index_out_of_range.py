# expect: line=3
def attention(q, k, v):
    return (q @ k.mT / q.shape[4]).softmax(-1) @ v
