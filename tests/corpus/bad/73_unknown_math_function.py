# expect: kind=name line=6 mentions=sqroot
import math


def attention(q, k, v):
    return (q @ k.mT / math.sqroot(q.size(-1))).softmax(-1) @ v
