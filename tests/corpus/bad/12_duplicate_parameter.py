# expect: kind=syntax line=2 mentions=bias
def attention(q, k, v, bias, bias):
    return (q @ k.mT + bias).softmax(-1) @ v
