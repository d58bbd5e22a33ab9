# expect: line=3 mentions=assert
def attention(q, k, v):
    assert 1 > 2, "never"
    return (q @ k.mT).softmax(-1) @ v
