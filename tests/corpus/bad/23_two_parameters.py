# expect: line=2 mentions=three
def attention(q, k):
    return (q @ k.mT).softmax(-1) @ k
