# paper/global_sliding_window.py spelled differently: mask function with nested conditions, heads picked by index.
import torch


def keep(b, h, q_idx, kv_idx, window):
    is_global = (q_idx < 2 * window) | (kv_idx < 2 * window)
    return is_global | (torch.abs(q_idx - kv_idx) <= window)


def attention(q, k, v, window: int):
    B, Hq, Sq, D = q.size()
    heads = torch.arange(Hq)
    kv = heads // (Hq // k.size(1))
    s = torch.einsum("bhid,bhjd->bhij", q, k[:, kv]) * (1 / D ** 0.5)
    m = keep(None, None, torch.arange(Sq)[:, None], torch.arange(k.size(2))[None, :], window)
    s = torch.where(m[None, None], s, torch.full_like(s, float("-inf")))
    return torch.einsum("bhij,bhjd->bhid", torch.softmax(s, dim=3), v[:, kv])
