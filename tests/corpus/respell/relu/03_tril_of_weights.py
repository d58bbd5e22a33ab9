# paper/relu.py spelled differently: tril of the weights themselves.
import torch


def attention(q, k, v):
    hk = k.shape[1]
    g = q.shape[1] // hk
    k = k[:, :, None].expand(-1, -1, g, -1, -1).flatten(1, 2)
    v = v[:, :, None].expand(-1, -1, g, -1, -1).flatten(1, 2)
    w = torch.relu((q * q.shape[-1] ** -0.5) @ k.mT)
    return torch.tril(w / k.shape[2]) @ v
