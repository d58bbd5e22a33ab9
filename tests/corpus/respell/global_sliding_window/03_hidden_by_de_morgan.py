# paper/global_sliding_window.py spelled differently: what is hidden rather than what is kept.
import math
import torch


def attention(query, key, value, window: int):
    n_rep = query.size(1) // key.size(1)
    key = key.repeat_interleave(n_rep, 1)
    value = value.repeat_interleave(n_rep, 1)
    row = torch.arange(query.size(-2), device=query.device).unsqueeze(1)
    col = torch.arange(key.size(-2), device=query.device).unsqueeze(0)
    far = torch.abs(col - row) > window
    hidden = far & (row >= 2 * window) & (col >= 2 * window)
    s = (query * query.size(-1) ** -0.5) @ key.transpose(2, 3)
    s = s.masked_fill(hidden, -torch.inf)
    return torch.softmax(s, -1) @ value
