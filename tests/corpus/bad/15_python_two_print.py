# expect: kind=syntax line=3 mentions=print
def attention(q, k, v):
    print "scores"
    return (q @ k.mT).softmax(-1) @ v
