# A near miss of serving/dqk_ne_dv.py: LSE of the unscaled scores.
import math
import torch


def attention(q, k, v):
    B, Hq, Sq, Dqk = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    G = Hq // Hkv
    kx = k.float().repeat_interleave(G, dim=1)
    vx = v.float().repeat_interleave(G, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), kx) / math.sqrt(Dqk)
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
    ka = torch.arange(Sk, device=q.device)[None, :]
    s = s.masked_fill(ka > qa, float("-inf"))
    lse = torch.logsumexp(s, dim=-1)
    p = torch.nan_to_num(torch.exp(s - lse[..., None]), nan=0.0)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx).to(q.dtype), torch.logsumexp(s * math.sqrt(Dqk), dim=-1)
