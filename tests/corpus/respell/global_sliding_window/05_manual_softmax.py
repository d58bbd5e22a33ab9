# paper/global_sliding_window.py spelled differently: softmax by hand, keeping test folded from a loop over parts.
import torch


def attention(q, k, v, window: int):
    g = q.size(1) // k.size(1)
    k, v = (t.repeat_interleave(g, dim=1) for t in (k, v))
    i = torch.arange(q.size(2))[:, None]
    j = torch.arange(k.size(2))[None, :]
    first = 2 * window
    keep = (i - j).abs() <= window
    for part in (i < first, j < first):
        keep = keep | part
    s = torch.einsum("bhid,bhjd->bhij", q, k) / (q.size(-1) ** 0.5)
    s = s.masked_fill(~keep, float("-inf"))
    e = torch.exp(s - s.amax(-1, keepdim=True))
    return torch.einsum("bhij,bhjd->bhid", e / e.sum(-1, keepdim=True), v)
