# expect: kind=unsupported line=3 mentions=try
def attention(q, k, v):
    try:
        s = q @ k.mT
    except RuntimeError:
        s = k @ q.mT
    return s.softmax(-1) @ v
