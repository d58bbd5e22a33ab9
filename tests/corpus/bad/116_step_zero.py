# expect: line=3 mentions=step
def attention(q, k, v):
    return (q @ k[:, :, ::0].mT).softmax(-1) @ v
