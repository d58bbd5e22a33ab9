# paper/share_question.py spelled differently: the question let in by where.
import torch


def attention(q, k, v, doc):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    s = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    n = torch.arange(q.size(-2))
    same = doc[:, None] == doc[None, :]
    question = (doc == 0)[None, :] & (doc != 0)[:, None]
    keep = torch.where(question, True, same & (n[:, None] >= n[None, :]))
    s = torch.where(keep[None, None], s, torch.tensor(float("-inf")))
    return torch.softmax(s, dim=-1) @ v
