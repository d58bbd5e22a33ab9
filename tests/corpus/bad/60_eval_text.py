# expect: line=3 mentions=eval
def attention(q, k, v):
    s = eval("q @ k.mT")
    return s.softmax(-1) @ v
