# paper/share_question.py spelled differently: einsum, where, doc compared through views.
import torch


def attention(q, k, v, doc):
    B, Hq, S, D = q.shape
    g = Hq // k.shape[1]
    kx, vx = k.repeat_interleave(g, dim=1), v.repeat_interleave(g, dim=1)
    s = torch.einsum("bhid,bhjd->bhij", q, kx) / D ** 0.5
    t = torch.arange(S)
    dq, dk = doc.view(-1, 1), doc.view(1, -1)
    keep = ((dq == dk) & (t.view(1, -1) <= t.view(-1, 1))) | ((dk == 0) & (dq != 0))
    s = torch.where(keep, s, float("-inf"))
    return torch.einsum("bhij,bhjd->bhid", torch.softmax(s, dim=-1), vx)
