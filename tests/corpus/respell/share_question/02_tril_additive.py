# paper/share_question.py spelled differently: tril for the causal part, additive mask.
import math
import torch


def attention(q, k, v, document):
    n = q.size(2)
    g = q.size(1) // k.size(1)
    k = k[:, :, None].expand(-1, -1, g, -1, -1).reshape(q.size(0), q.size(1), n, q.size(3))
    v = v[:, :, None].expand(-1, -1, g, -1, -1).reshape(q.size(0), q.size(1), n, v.size(3))
    causal = torch.tril(torch.ones(n, n, dtype=torch.bool))
    same = document.unsqueeze(1) == document.unsqueeze(0)
    to_question = (document == 0).unsqueeze(0) & (document != 0).unsqueeze(1)
    mask = torch.full((n, n), -math.inf).masked_fill((causal & same) | to_question, 0.0)
    return torch.softmax(q @ k.transpose(-1, -2) / math.sqrt(q.size(3)) + mask, dim=-1) @ v
