# A near miss of serving/gptoss_learned_sink.py: causal aligned to the first key.
import math
import torch


def attention(q, k, v, sink, window=128):
    B, Hq, Sq, D = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    kx = k.float().repeat_interleave(Hq // Hkv, dim=1)
    vx = v.float().repeat_interleave(Hq // Hkv, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), kx) / math.sqrt(D)
    qa = torch.arange(Sq, device=q.device)[:, None]
    ka = torch.arange(Sk, device=q.device)[None, :]
    keep = ka <= qa
    if window is not None:
        keep = keep & ((qa - ka) < window)
    s = s.masked_fill(~keep, float("-inf"))
    sk = sink.float().view(1, Hq, 1, 1).expand(B, Hq, Sq, 1)
    full = torch.cat([s, sk], dim=-1)
    p = torch.softmax(full, dim=-1)[..., :Sk]
    return torch.einsum("bhqk,bhkd->bhqd", p, vx).to(q.dtype)
