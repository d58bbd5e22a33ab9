# paper/global_sliding_window.py spelled differently: a helper for the band, the scale split over query and key.
import torch


def band(i, j, width):
    d = i - j
    return torch.logical_and(d <= width, d >= -width)


def repeat_heads(x, n):
    b, h, s, d = x.shape
    return x[:, :, None, :, :].expand(b, h, n, s, d).reshape(b, h * n, s, d)


def attention(q, k, v, window: int):
    n = q.size(1) // k.size(1)
    k, v = repeat_heads(k, n), repeat_heads(v, n)
    c = q.size(-1) ** -0.25
    i = torch.arange(q.size(2)).unsqueeze(-1)
    j = torch.arange(k.size(2)).unsqueeze(0)
    keep = torch.logical_or(band(i, j, window), torch.logical_or(i < 2 * window, j < 2 * window))
    s = (q * c) @ (k * c).transpose(-2, -1)
    return s.masked_fill(torch.logical_not(keep), -torch.inf).softmax(dim=-1) @ v
