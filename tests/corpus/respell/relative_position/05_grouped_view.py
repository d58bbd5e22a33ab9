# paper/relative_position.py spelled differently: KV heads and group apart, bias viewed the same way.
import torch


def attention(q, k, v, bias, max_distance: int = 128):
    B, Hq, Sq, D = q.shape
    Hk, Sk = k.shape[1], k.shape[2]
    G = Hq // Hk
    rel = torch.arange(Sk)[None, :] - torch.arange(Sq)[:, None]
    b = bias.view(Hk, G, -1)[:, :, rel.clamp(-max_distance, max_distance) + max_distance]
    s = torch.einsum("bkgid,bkjd->bkgij", q.view(B, Hk, G, Sq, D), k) * D ** -0.5
    p = torch.softmax(s + b, dim=-1)
    return torch.einsum("bkgij,bkjd->bkgid", p, v).reshape(B, Hq, Sq, v.size(-1))
