# paper/prefix_lm.py spelled differently: a mask function over b, h, q_idx, kv_idx, called with broadcast index tensors.
import torch


def visible(b, h, q_idx, kv_idx, prefix):
    causal = q_idx >= kv_idx
    return causal | (kv_idx < prefix)


def attention(q, k, v, prefix: int):
    B, Hq, Sq, D = q.shape
    Sk = k.shape[2]
    head = torch.arange(Hq)
    k = k[:, head // (Hq // k.shape[1])]
    v = v[:, head // (Hq // v.shape[1])]
    b = torch.arange(B).view(B, 1, 1, 1)
    h = head.view(1, Hq, 1, 1)
    q_idx = torch.arange(Sq).view(1, 1, Sq, 1)
    kv_idx = torch.arange(Sk).view(1, 1, 1, Sk)
    score = (q @ k.transpose(-2, -1)) * (D ** -0.5)
    score = torch.where(visible(b, h, q_idx, kv_idx, prefix), score, -float("inf"))
    return torch.softmax(score, dim=-1) @ v
