# expect: mentions=os
import os


def attention(q, k, v):
    return (q @ k.mT).softmax(-1) @ v * float(os.environ["SCALE"])
