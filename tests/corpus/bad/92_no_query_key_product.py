# expect: line=3
def attention(q, k, v):
    return v.softmax(-1)
