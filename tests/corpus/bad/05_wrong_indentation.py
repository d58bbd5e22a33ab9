# expect: kind=syntax line=4 mentions=indent
def attention(q, k, v):
    s = q @ k.mT
      s = s.softmax(-1)
    return s @ v
