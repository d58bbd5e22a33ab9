# expect: line=3 mentions=dim
def attention(q, k, v):
    return (q @ k.mT).softmax(dim=-1, dim=-1) @ v
