# A near miss of serving/encoder_bidirectional.py: scale is 1 / D.
import torch


def attention(q, k, v, kv_len):
    B, H, Sq, D = q.shape
    Sk = k.shape[2]
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), k.float()) / D
    ki = torch.arange(Sk, device=q.device)
    keep = ki[None, :] < kv_len[:, None].to(q.device)
    keep = keep[:, None, None, :].expand(B, H, Sq, Sk)
    # values in the padded area may be NaN in a real cache: they must not leak
    vf = torch.where((ki[None, :] < kv_len[:, None].to(q.device))[:, None, :, None], v.float(),
                     torch.zeros_like(v.float()))
    s = torch.where(keep, s, torch.full_like(s, float("-inf")))
    m = s.amax(dim=-1, keepdim=True)
    m = torch.where(torch.isinf(m), torch.zeros_like(m), m)
    p = torch.exp(s - m)
    l = p.sum(dim=-1, keepdim=True)
    p = p / torch.where(l == 0, torch.ones_like(l), l)
    return torch.einsum("bhqk,bhkd->bhqd", p, vf).to(q.dtype)
