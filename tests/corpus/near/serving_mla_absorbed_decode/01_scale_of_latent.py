# A near miss of serving/mla_absorbed_decode.py: scale from the absorbed head dim.
import math
import torch


def attention(q, k, v=None, d_ckv=512, qk_head_dim=192, causal=True):
    B, H, Sq, Dt = q.shape
    Sk = k.shape[2]
    kk = k.float()[:, 0]
    ckv = kk[..., :d_ckv]
    s = torch.einsum("bhqd,bkd->bhqk", q.float(), kk) / math.sqrt(Dt)
    if causal:
        qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
        ka = torch.arange(Sk, device=q.device)[None, :]
        s = s.masked_fill(ka > qa, float("-inf"))
    p = torch.nan_to_num(torch.softmax(s, dim=-1), nan=0.0)
    return torch.einsum("bhqk,bkd->bhqd", p, ckv).to(q.dtype)
