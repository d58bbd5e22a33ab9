# expect: kind=syntax line=3 mentions=indent
def attention(q, k, v):
return (q @ k.mT).softmax(-1) @ v
