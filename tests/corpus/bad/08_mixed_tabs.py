# expect: kind=syntax line=5 mentions=tab
def attention(q, k, v):
    if True:
        s = q @ k.mT
	return s.softmax(-1) @ v
