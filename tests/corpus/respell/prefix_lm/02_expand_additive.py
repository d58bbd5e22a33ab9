# paper/prefix_lm.py spelled differently: expand and reshape for the group, an additive mask of 0 and -inf.
import math
import torch


def attention(query, key, value, n_prefix):
    B, Hk, Sk, D = key.size()
    G = query.size(1) // Hk
    key = key[:, :, None].expand(B, Hk, G, Sk, D).reshape(B, Hk * G, Sk, D)
    value = value[:, :, None].expand(-1, -1, G, -1, -1).reshape(B, Hk * G, Sk, value.size(-1))
    row = torch.arange(query.size(2)).view(-1, 1)
    col = torch.arange(Sk).view(1, -1)
    hidden = (col > row) & (col >= n_prefix)
    mask = torch.zeros(query.size(2), Sk).masked_fill(hidden, -math.inf)
    scores = torch.matmul(query, key.transpose(2, 3)) / math.sqrt(D) + mask
    return torch.matmul(scores.softmax(-1), value)
