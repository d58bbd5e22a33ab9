# expect: kind=name mentions=attention
def attend(q, k, v):
    return (q @ k.mT).softmax(-1) @ v
