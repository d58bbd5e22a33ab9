# expect: line=3 mentions=raise
def attention(q, k, v):
    raise NotImplementedError("attention")
