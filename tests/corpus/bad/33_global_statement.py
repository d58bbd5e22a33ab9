# expect: kind=unsupported line=6 mentions=global
calls = 0


def attention(q, k, v):
    global calls
    calls = calls + 1
    return (q @ k.mT * calls).softmax(-1) @ v
