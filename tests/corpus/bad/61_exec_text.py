# expect: line=3 mentions=exec
def attention(q, k, v):
    exec("s = q @ k.mT")
    return s.softmax(-1) @ v
