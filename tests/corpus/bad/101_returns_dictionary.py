# expect: line=3
def attention(q, k, v):
    return {"out": (q @ k.mT).softmax(-1) @ v}
