# expect: line=2 mentions=*
from helpers import *


def attention(q, k, v):
    return scores(q, k).softmax(-1) @ v
