# expect: kind=shape line=3 mentions=@
def attention(q, k, v):
    return (q @ k).softmax(-1) @ v
