# A near miss of serving/cascade_merge_lse.py: a token does not see itself.
import math
import torch


def _part(q, k, v, keep, scale):
    s = torch.einsum("bhqd,bhkd->bhqk", q, k) * scale
    s = s.masked_fill(~keep, float("-inf"))
    if s.shape[-1] == 0:
        lse = torch.full(s.shape[:-1], float("-inf"), device=q.device)
        return torch.zeros(q.shape[:-1] + (v.shape[-1],), device=q.device), lse
    m = s.amax(-1)
    m0 = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    e = torch.exp(s - m0[..., None])
    l = e.sum(-1)
    out = torch.einsum("bhqk,bhkd->bhqd", e, v) / torch.where(l == 0, torch.ones_like(l), l)[..., None]
    return out, torch.where(l == 0, torch.full_like(l, float("-inf")), m0 + torch.log(l))


def attention(q, k, v, k_pre, v_pre):
    B, Hq, Sq, D = q.shape
    Hkv, Ss = k.shape[1], k.shape[2]
    G, Sp = Hq // Hkv, k_pre.shape[2]
    scale = 1.0 / math.sqrt(D)
    qf = q.float()
    ex = lambda t: t.float().repeat_interleave(G, dim=1)
    kp, vp = ex(k_pre).expand(B, Hq, Sp, D), ex(v_pre).expand(B, Hq, Sp, v_pre.shape[-1])
    o1, l1 = _part(qf, kp, vp, torch.ones(Sq, Sp, dtype=torch.bool, device=q.device), scale)
    qa = torch.arange(Sq, device=q.device)[:, None] + (Ss - Sq)
    keep = torch.arange(Ss, device=q.device)[None, :] < qa
    o2, l2 = _part(qf, ex(k), ex(v), keep, scale)
    mx = torch.maximum(l1, l2)
    m0 = torch.where(torch.isinf(mx), torch.zeros_like(mx), mx)
    w1, w2 = torch.exp(l1 - m0), torch.exp(l2 - m0)
    t = w1 + w2
    tt = torch.where(t == 0, torch.ones_like(t), t)
    out = (o1 * w1[..., None] + o2 * w2[..., None]) / tt[..., None]
    lse = torch.where(t == 0, torch.full_like(t, float("-inf")), m0 + torch.log(tt))
    return out.to(q.dtype), lse
