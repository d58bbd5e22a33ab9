# expect: kind=syntax line=3 mentions=string
def attention(q, k, v):
    """Attention without an end of its description.
    return (q @ k.mT).softmax(-1) @ v
