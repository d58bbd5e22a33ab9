# expect: kind=syntax line=2 mentions=:
def attention(q, k, v)
    return (q @ k.mT).softmax(-1) @ v
