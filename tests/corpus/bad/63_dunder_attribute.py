# expect: line=3 mentions=__class__
def attention(q, k, v):
    s = q.__class__.__matmul__(q, k.mT)
    return s.softmax(-1) @ v
