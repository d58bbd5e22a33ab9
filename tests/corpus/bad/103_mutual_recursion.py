# expect: kind=recursion
def one(x):
    return other(x) + 1


def other(x):
    return one(x) * 2


def attention(q, k, v):
    return one(q @ k.mT).softmax(-1) @ v
