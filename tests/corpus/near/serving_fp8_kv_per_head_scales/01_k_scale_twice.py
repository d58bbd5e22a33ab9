# A near miss of serving/fp8_kv_per_head_scales.py: scale of K applied twice.
import math
import torch


def _bc(x, B, H, S, device):
    x = torch.as_tensor(x, dtype=torch.float32, device=device)
    if x.dim() == 0:
        x = x.view(1, 1, 1)
    elif x.dim() == 1:
        x = x.view(1, -1, 1)
    elif x.dim() == 2:
        x = x[:, :, None]
    return x.expand(B, H, S)[..., None]


def attention(q, k_q, v_q, k_scale, v_scale, q_scale=1.0):
    B, Hq, Sq, D = q.shape
    Hkv, Sk = k_q.shape[1], k_q.shape[2]
    G = Hq // Hkv
    k = k_q.float() * _bc(k_scale, B, Hkv, Sk, q.device) * _bc(k_scale, B, Hkv, Sk, q.device)
    v = v_q.float() * _bc(v_scale, B, Hkv, Sk, q.device)
    k = k.repeat_interleave(G, dim=1)
    v = v.repeat_interleave(G, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float() * float(q_scale), k) / math.sqrt(D)
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
    ka = torch.arange(Sk, device=q.device)[None, :]
    s = s.masked_fill(ka > qa, float("-inf"))
    p = torch.nan_to_num(torch.softmax(s, dim=-1), nan=0.0)
    return torch.einsum("bhqk,bhkd->bhqd", p, v).to(torch.float32)
