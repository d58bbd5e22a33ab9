# expect: line=3 mentions=repeat_interleave
def attention(q, k, v):
    k = k.repeat_interleave(-2, dim=1)
    return (q @ k.mT).softmax(-1) @ v
