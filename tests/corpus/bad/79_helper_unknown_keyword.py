# expect: line=7 mentions=factor
def scores(q, k, scale=1.0):
    return q @ k.mT * scale


def attention(q, k, v):
    return scores(q, k, factor=0.5).softmax(-1) @ v
