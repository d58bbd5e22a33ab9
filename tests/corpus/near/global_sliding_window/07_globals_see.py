# A near miss of paper/global_sliding_window.py: global tokens see all but are not seen.
import torch
import torch.nn.functional as F


def attention(q, k, v, window: int):
    n_rep = q.shape[1] // k.shape[1]
    k, v = (torch.repeat_interleave(t, n_rep, dim=1) for t in (k, v))
    s = torch.einsum("bhid,bhjd->bhij", q, k) * q.shape[-1] ** -0.5
    i = torch.arange(s.shape[-2])[:, None]
    j = torch.arange(s.shape[-1])[None, :]
    keep = ((i - j).abs() <= window) | (i < 2 * window)
    s = torch.where(keep, s, torch.tensor(float("-inf")))
    return torch.einsum("bhij,bhjd->bhid", F.softmax(s, dim=-1), v)
