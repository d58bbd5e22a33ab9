# expect: line=7 mentions=scores
def scores(q, k, scale):
    return q @ k.mT * scale


def attention(q, k, v):
    return scores(q, k).softmax(-1) @ v
