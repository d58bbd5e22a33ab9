# expect: line=3
def attention(q, k, v):
    n = "a,b,c".split(",")
    return (q @ k.mT * len(n[0].upper())).softmax(-1) @ v
