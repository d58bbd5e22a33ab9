# expect: line=3 mentions=zero
def attention(q, k, v):
    g = q.size(1) // (k.size(1) - k.size(1))
    return (q @ k.repeat_interleave(g, 1).mT).softmax(-1) @ v.repeat_interleave(g, 1)
