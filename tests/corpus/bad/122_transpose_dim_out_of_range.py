# expect: kind=shape line=3 mentions=transpose
def attention(q, k, v):
    return (q @ k.transpose(-1, 7)).softmax(-1) @ v
