# paper/causal_blockwise.py spelled differently: D**-0.25 on both, softmax by hand.
import torch


def attention(q, k, v, doc, last):
    g, c = q.size(1) // k.size(1), q.size(-1) ** -0.25
    pos = torch.arange(q.size(2))
    dq, dk = doc.view(-1, 1), doc.view(1, -1)
    own = (dq == dk) & (pos.view(-1, 1) >= pos.view(1, -1))
    all_before = (dq == last) & ~(dk == last)
    s = torch.einsum("bhic,bhjc->bhij", c * q, c * k.repeat_interleave(g, dim=1))
    s = torch.where(own | all_before, s, -float("inf"))
    e = torch.exp(s - s.max(dim=-1, keepdim=True)[0])
    w = e / e.sum(dim=-1, keepdim=True)
    return torch.einsum("bhij,bhjd->bhid", w, v.repeat_interleave(g, dim=1))
