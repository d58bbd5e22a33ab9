import torch
def attention(q, k, v, x, w=3):
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    h = torch.arange(q.size(1)).view(-1,1,1)
    s = q @ k.mT
    s = s + (1e300 * ((-1e18 / j) + 2**53+1))
    return (s @ v) * 0.5
