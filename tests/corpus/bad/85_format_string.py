# expect: line=4
def attention(q, k, v):
    s = q @ k.mT
    name = f"{s.max():.3f}"
    return (s * len(name)).softmax(-1) @ v
