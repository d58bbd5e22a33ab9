# expect: kind=unsupported line=2 mentions=*
def attention(*tensors):
    q, k, v = tensors
    return (q @ k.mT).softmax(-1) @ v
