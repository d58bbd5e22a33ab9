# A near miss of serving/causal_gqa.py: one key ahead is seen.
import math
import torch


def attention(q, k, v, scale=None):
    B, Hq, Sq, D = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    G = Hq // Hkv
    scale = 1.0 / math.sqrt(D) if scale is None else scale
    kx = k.float().repeat_interleave(G, dim=1)
    vx = v.float().repeat_interleave(G, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), kx) * scale
    qi = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq + 1)
    ki = torch.arange(Sk, device=q.device)[None, :]
    keep = ki <= qi
    s = s.masked_fill(~keep, float("-inf"))
    m = s.amax(dim=-1, keepdim=True)
    m = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    p = torch.exp(s - m)
    l = p.sum(dim=-1, keepdim=True)
    p = p / torch.where(l == 0, torch.ones_like(l), l)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx).to(q.dtype)
