# expect: kind=shape line=3 mentions=permute
def attention(q, k, v):
    return (q @ k.permute(0, 1, 3, 3)).softmax(-1) @ v
