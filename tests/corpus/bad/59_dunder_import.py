# expect: line=3 mentions=__import__
def attention(q, k, v):
    m = __import__("math")
    return (q @ k.mT / m.sqrt(q.size(-1))).softmax(-1) @ v
