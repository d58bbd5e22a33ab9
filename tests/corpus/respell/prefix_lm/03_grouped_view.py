# paper/prefix_lm.py spelled differently: queries viewed as KV heads times group, keys broadcast.
import torch
import torch.nn.functional as F


def attention(q, k, v, prefix: int):
    b, hq, sq, d = q.shape
    _, hk, sk, _ = k.shape
    qg = q.view(b, hk, hq // hk, sq, d)
    s = qg @ k[:, :, None].transpose(-2, -1)
    s = s * (1.0 / d ** 0.5)
    i = torch.arange(sq, device=q.device).unsqueeze(1)
    j = torch.arange(sk, device=q.device).unsqueeze(0)
    s = s.masked_fill(((j <= i) | (j < prefix)).logical_not(), float("-inf"))
    p = F.softmax(s, dim=-1)
    return (p @ v[:, :, None]).reshape(b, hq, sq, v.size(-1))
