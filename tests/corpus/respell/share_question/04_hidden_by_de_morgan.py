# paper/share_question.py spelled differently: what is hidden, negations pushed in.
import torch


def attention(q, k, v, doc):
    r = q.size(1) // k.size(1)
    k, v = (torch.repeat_interleave(x, r, 1) for x in (k, v))
    pos = torch.arange(q.size(2))
    row, col = doc[:, None], doc[None, :]
    later = pos[None, :] > pos[:, None]
    hidden = ((row != col) | later) & ((row == 0) | (col != 0))
    s = (q * q.size(-1) ** -0.5) @ k.mT
    return s.masked_fill(hidden, -torch.inf).softmax(-1) @ v
