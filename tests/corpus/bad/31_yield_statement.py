# expect: kind=unsupported line=4 mentions=yield
def attention(q, k, v):
    s = q @ k.mT
    yield s.softmax(-1) @ v
