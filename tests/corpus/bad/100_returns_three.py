# expect: line=5
def attention(q, k, v):
    s = q @ k.mT
    p = s.softmax(-1)
    return p @ v, s.logsumexp(-1), s
