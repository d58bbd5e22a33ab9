# expect: line=3 mentions=step
def attention(q, k, v):
    return (q @ k[:, :, ::-1].mT).softmax(-1) @ v
