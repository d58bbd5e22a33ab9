# expect: kind=recursion line=3
def attention(q, k, v):
    halve = lambda x, n: halve(x / 2, n - 1)
    return halve(q @ k.mT, 3).softmax(-1) @ v
