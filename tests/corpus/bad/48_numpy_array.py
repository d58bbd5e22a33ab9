# expect: line=3 mentions=numpy
def attention(q, k, v):
    s = (q @ k.mT).numpy()
    return s @ v
