# expect: kind=name line=3 mentions=torch
def attention(q, k, v):
    return torch.softmax(q @ k.mT, -1) @ v
