# expect: kind=recursion line=3 mentions=attention
def attention(q, k, v):
    return attention(q / 2, k, v)
