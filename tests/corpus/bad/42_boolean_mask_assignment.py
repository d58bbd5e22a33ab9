# expect: mentions=mask
def attention(q, k, v):
    s = q @ k.mT
    s[s < 0] = 0.0
    return (s / k.size(2)) @ v.sum(1, keepdim=True)[s > 0]
