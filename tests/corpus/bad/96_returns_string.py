# expect: line=4
def attention(q, k, v):
    s = (q @ k.mT).softmax(-1) @ v
    return "done"
