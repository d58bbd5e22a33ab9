# A near miss of paper/share_question.py: documents see themselves whole.
import torch


def attention(q, k, v, doc):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = torch.matmul(q, k.mT) * (1.0 / q.size(-1) ** 0.5)
    pos = torch.arange(q.size(2), device=q.device)
    same = doc[:, None] == doc[None, :]
    causal = pos[:, None] >= pos[None, :]
    question = (doc[:, None] != 0) & (doc[None, :] == 0)
    s = s.masked_fill(torch.logical_not(same | question), -torch.inf)
    return torch.softmax(s, -1).matmul(v)
