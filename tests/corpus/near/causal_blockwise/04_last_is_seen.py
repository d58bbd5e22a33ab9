# A near miss of paper/causal_blockwise.py: the last block is seen by the others instead of seeing them.
import torch


def attention(q, k, v, doc, last: int):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = (q @ k.transpose(2, 3)) / q.size(-1) ** 0.5
    pos = torch.arange(q.size(2), device=q.device)
    dq, dk = doc.view(-1, 1), doc.view(1, -1)
    keep = ((dq == dk) & (pos.view(-1, 1) >= pos.view(1, -1))) | ((dk == last) & (dq != last))
    return s.masked_fill(keep.logical_not(), float("-inf")).softmax(-1) @ v
