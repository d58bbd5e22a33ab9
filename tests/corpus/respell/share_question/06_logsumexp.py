# paper/share_question.py spelled differently: weights by logsumexp, comparison methods.
import math
import torch


def attention(q, k, v, doc):
    g = q.size(1) // k.size(1)
    kx = k.unsqueeze(2).repeat(1, 1, g, 1, 1).flatten(1, 2)
    vx = v.unsqueeze(2).repeat(1, 1, g, 1, 1).flatten(1, 2)
    n = q.size(2)
    i, j = torch.arange(n).view(n, 1), torch.arange(n).view(1, n)
    a, b = doc.view(n, 1), doc.view(1, n)
    keep = (a.eq(b) & i.ge(j)) | (a.ne(0) & b.eq(0))
    s = q.matmul(kx.transpose(-2, -1)).div(math.sqrt(q.size(3))).masked_fill(~keep, float("-inf"))
    return torch.exp(s - torch.logsumexp(s, -1, keepdim=True)).matmul(vx)
