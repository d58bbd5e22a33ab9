# A near miss of serving/alibi.py: slopes in reverse order.
import math
import torch


def alibi_slopes(H):
    def pow2(n):
        r = 2.0 ** (-8.0 / n)
        return [r ** (i + 1) for i in range(n)]
    n = 2 ** int(math.floor(math.log2(H)))
    out = pow2(n)
    if n < H:
        out = out + pow2(2 * n)[0::2][: H - n]
    return torch.tensor(out, dtype=torch.float32)


def attention(q, k, v, slopes=None, causal=True):
    B, Hq, Sq, D = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    if slopes is None:
        slopes = alibi_slopes(Hq)
    slopes = slopes.to(q.device).float()
    kx = k.float().repeat_interleave(Hq // Hkv, dim=1)
    vx = v.float().repeat_interleave(Hq // Hkv, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), kx) / math.sqrt(D)
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
    ka = torch.arange(Sk, device=q.device)[None, :]
    s = s - slopes.flip(0).view(1, Hq, 1, 1) * (qa - ka).abs().float()
    if causal:
        s = s.masked_fill(ka > qa, float("-inf"))
    m = s.amax(-1, keepdim=True)
    m = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    e = torch.exp(s - m)
    l = e.sum(-1, keepdim=True)
    p = e / torch.where(l == 0, torch.ones_like(l), l)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx).to(q.dtype)
