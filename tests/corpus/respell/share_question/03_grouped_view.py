# paper/share_question.py spelled differently: queries grouped by KV head.
import torch
import torch.nn.functional as F


def attention(q, k, v, doc):
    b, hq, s, d = q.shape
    hk = k.size(1)
    x = torch.einsum("bkgid,bkjd->bkgij", q.reshape(b, hk, hq // hk, s, d), k) * d ** -0.5
    i, j = torch.arange(s)[:, None], torch.arange(s)[None, :]
    question = (doc[i] != 0) & (doc[j] == 0)
    keep = question | ((doc[i] == doc[j]) & (j <= i))
    x = x.masked_fill(~keep, float("-inf"))
    y = torch.einsum("bkgij,bkjd->bkgid", F.softmax(x, -1), v)
    return y.reshape(b, hq, s, v.size(-1))
