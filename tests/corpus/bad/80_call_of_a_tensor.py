# expect: kind=type line=4 mentions=call
def attention(q, k, v):
    s = q @ k.mT
    return s(-1) @ v
