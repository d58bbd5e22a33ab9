# expect: kind=shape line=4 mentions=view
def attention(q, k, v):
    B, H, S, D = q.shape
    s = (q @ k.mT).view(B, H, S, D + 1)
    return s.softmax(-1) @ v
