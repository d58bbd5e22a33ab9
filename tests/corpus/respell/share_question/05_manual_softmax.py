# paper/share_question.py spelled differently: D**-0.25 on both, softmax by hand, helper for the mask.
import torch


def may_see(doc, i, j):
    own = torch.logical_and(doc[i] == doc[j], i >= j)
    shared = torch.logical_and(doc[j] == 0, doc[i] != 0)
    return torch.logical_or(own, shared)


def attention(q, k, v, doc):
    c = q.size(-1) ** -0.25
    g = q.size(1) // k.size(1)
    pos = torch.arange(doc.size(0))
    s = (q * c) @ (k * c).repeat_interleave(g, 1).transpose(2, 3)
    s = torch.where(may_see(doc, pos.unsqueeze(1), pos.unsqueeze(0)), s, float("-inf"))
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return (e / e.sum(-1, keepdim=True)) @ v.repeat_interleave(g, 1)
