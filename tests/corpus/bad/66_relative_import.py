# expect: mentions=import
from . import masks


def attention(q, k, v):
    return (q @ k.mT + masks.causal(q)).softmax(-1) @ v
