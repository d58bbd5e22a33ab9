# expect: kind=shape line=3 mentions=dim
def attention(q, k, v):
    return (q @ k.mT).softmax(4) @ v
