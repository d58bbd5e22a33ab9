# expect: kind=unsupported line=6 mentions=nonlocal
def attention(q, k, v):
    s = q @ k.mT

    def halve():
        nonlocal s
        s = s / 2

    halve()
    return s.softmax(-1) @ v
