# expect: line=3 mentions=as_strided
def attention(q, k, v):
    return (q @ k.as_strided((1, 1, 4, 4), (0, 0, 1, 4)).mT).softmax(-1) @ v
