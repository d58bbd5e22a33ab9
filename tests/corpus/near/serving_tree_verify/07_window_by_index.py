# A near miss of serving/tree_verify.py: window over the flattened index instead of the depth.
import math
import torch


def attention(q, k, v, parent, window=None):
    B, Hq, T, D = q.shape
    Hkv, Sk = k.shape[1], k.shape[2]
    P = Sk - T
    anc = torch.zeros(T, T, dtype=torch.bool, device=q.device)
    depth = torch.zeros(T, dtype=torch.long, device=q.device)
    par = [int(x) for x in parent]
    for i in range(T):
        anc[i, i] = True
        if par[i] >= 0:
            anc[i] = anc[i] | anc[par[i]]
            depth[i] = depth[par[i]] + 1
    keep = torch.cat([torch.ones(T, P, dtype=torch.bool, device=q.device), anc], dim=1)
    if window is not None:
        kpos = torch.cat([torch.arange(P, device=q.device), P + torch.arange(T)])
        keep = keep & ((P + torch.arange(T))[:, None] - kpos[None, :] < window)
    kx = k.float().repeat_interleave(Hq // Hkv, dim=1)
    vx = v.float().repeat_interleave(Hq // Hkv, dim=1)
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), kx) / math.sqrt(D)
    s = s.masked_fill(~keep, float("-inf"))
    p = torch.softmax(s, dim=-1)
    return torch.einsum("bhqk,bhkd->bhqd", p, vx).to(q.dtype)
