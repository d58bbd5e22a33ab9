# expect: line=2 mentions=q
def attention(q=None, k=None, v=None):
    return (q @ k.mT).softmax(-1) @ v
