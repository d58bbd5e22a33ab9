# A near miss of serving/differential_attention.py: times lambda_init instead of 1 - lambda_init.
import math
import torch


def attention(q, k, v, lam, lambda_init=0.8, norm_weight=None, eps=1e-5):
    B, H2, Sq, D = q.shape
    H, Sk = H2 // 2, k.shape[2]
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), k.float()) / math.sqrt(D)
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
    ka = torch.arange(Sk, device=q.device)[None, :]
    s = s.masked_fill(ka > qa, float("-inf"))
    p = torch.softmax(s, dim=-1).view(B, H, 2, Sq, Sk)
    lam = torch.as_tensor(lam, dtype=torch.float32, device=q.device).reshape(-1, 1, 1)
    a = p[:, :, 0] - lam * p[:, :, 1]
    o = torch.einsum("bhqk,bhkd->bhqd", a, v.float())
    if norm_weight is not None:
        o = o * torch.rsqrt(o.pow(2).mean(-1, keepdim=True) + eps) * norm_weight.float()
        o = o * lambda_init
    return o.to(q.dtype)
