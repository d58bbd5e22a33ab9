# expect: line=2 mentions=attention
def attention():
    return 0
