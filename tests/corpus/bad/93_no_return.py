# expect: mentions=return
def attention(q, k, v):
    s = q @ k.mT
    p = s.softmax(-1) @ v
