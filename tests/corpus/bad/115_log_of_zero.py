# expect: line=6
import math


def attention(q, k, v):
    return (q @ k.mT - math.log(0)).softmax(-1) @ v
