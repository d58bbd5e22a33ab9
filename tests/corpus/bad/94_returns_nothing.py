# expect: line=4 mentions=return
def attention(q, k, v):
    s = (q @ k.mT).softmax(-1) @ v
    return
