# paper/sigmoid.py spelled differently: bias and mask in one additive tensor.
import math
import torch


def attention(query, key, value):
    B, Hk, Sk, D = key.shape
    G = query.size(1) // Hk
    key = key[:, :, None].expand(B, Hk, G, Sk, D).reshape(B, Hk * G, Sk, D)
    value = value[:, :, None].expand(B, Hk, G, Sk, value.size(3)).reshape(B, Hk * G, Sk, value.size(3))
    bias = torch.full((query.size(2), Sk), -math.inf).triu(1) - math.log(Sk)
    return torch.sigmoid(query @ key.transpose(2, 3) / math.sqrt(D) + bias) @ value
