# A near miss of serving/mla_absorbed_decode.py: causal aligned to the first key.
import math
import torch


def attention(q, k, v=None, d_ckv=512, qk_head_dim=192, causal=True):
    B, H, Sq, Dt = q.shape
    Sk = k.shape[2]
    kk = k.float()[:, 0]
    ckv = kk[..., :d_ckv]
    s = torch.einsum("bhqd,bkd->bhqk", q.float(), kk) / math.sqrt(qk_head_dim)
    if causal:
        qa = torch.arange(Sq, device=q.device)[:, None]
        ka = torch.arange(Sk, device=q.device)[None, :]
        s = s.masked_fill(ka > qa, float("-inf"))
    p = torch.nan_to_num(torch.softmax(s, dim=-1), nan=0.0)
    return torch.einsum("bhqk,bkd->bhqd", p, ckv).to(q.dtype)
