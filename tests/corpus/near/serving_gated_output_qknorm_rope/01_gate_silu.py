# A near miss of serving/gated_output_qknorm_rope.py: gate is silu instead of sigmoid.
import math
import torch


def _rms(x, w, eps):
    x = x.float()
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * w.float()


def _rope(x, pos, rot, theta):
    half = rot // 2
    inv = theta ** (-torch.arange(half, device=x.device).float() * 2.0 / rot)
    ang = pos.to(x.device).float()[:, None, :, None] * inv
    c, s = torch.cos(ang), torch.sin(ang)
    x1, x2, rest = x[..., :half], x[..., half:rot], x[..., rot:]
    return torch.cat([x1 * c - x2 * s, x2 * c + x1 * s, rest], dim=-1)


def attention(q, k, v, gate, qw, kw, pos_q, pos_k, rot=64, theta=1.0e7, eps=1e-6):
    B, Hq, Sq, D = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    qf = _rope(_rms(q, qw, eps), pos_q, rot, theta)
    kf = _rope(_rms(k, kw, eps), pos_k, rot, theta)
    kx = kf.repeat_interleave(Hq // Hkv, dim=1)
    vx = v.float().repeat_interleave(Hq // Hkv, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", qf, kx) / math.sqrt(D)
    keep = pos_k.to(q.device)[:, None, None, :] <= pos_q.to(q.device)[:, None, :, None]
    s = s.masked_fill(~keep, float("-inf"))
    p = torch.nan_to_num(torch.softmax(s, dim=-1), nan=0.0)
    o = torch.einsum("bhqk,bhkd->bhqd", p, vx)
    return (o * gate.float() * torch.sigmoid(gate.float())).to(q.dtype)
