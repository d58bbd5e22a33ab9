# expect: kind=syntax line=3 mentions=]
def attention(q, k, v):
    s = q @ k.transpose(-1, -2]
    return s.softmax(-1) @ v
