# A near miss of serving/sliding_window.py: window is W - 1.
import math
import torch


def attention(q, k, v, window=128):
    B, Hq, Sq, D = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    kx = k.float().repeat_interleave(Hq // Hkv, dim=1)
    vx = v.float().repeat_interleave(Hq // Hkv, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), kx) / math.sqrt(D)
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
    ka = torch.arange(Sk, device=q.device)[None, :]
    dist = qa - ka
    keep = (dist >= 0) & (dist < window - 1)
    s = s.masked_fill(~keep, float("-inf"))
    row_any = keep.any(dim=-1)[None, None, :, None]
    p = torch.softmax(s.masked_fill(~row_any, 0.0), dim=-1)
    p = torch.where(row_any & keep[None, None], p, torch.zeros_like(p))
    return torch.einsum("bhqk,bhkd->bhqd", p, vx).to(q.dtype)
