# A near miss of serving/dsa_topk_indexer.py: indexer without relu.
import math
import torch


def attention(q, k, v, qi, ki, wi, topk=64):
    B, H, Sq, D = q.shape
    Sk = k.shape[2]
    qa = torch.arange(Sq, device=q.device)[:, None] + (Sk - Sq)
    ka = torch.arange(Sk, device=q.device)[None, :]
    causal = ka <= qa
    raw = torch.einsum("bhqd,bkd->bhqk", qi.float(), ki.float())
    idx = torch.einsum("bhqk,bqh->bqk", raw, wi.float())
    idx = idx.masked_fill(~causal, float("-inf"))
    order = torch.argsort(idx, dim=-1, descending=True, stable=True)
    rank = torch.empty_like(order)
    rank.scatter_(-1, order, torch.arange(Sk, device=q.device).expand_as(order).contiguous())
    keep = (rank < topk) & causal
    s = torch.einsum("bhqd,bkd->bhqk", q.float(), k.float()[:, 0]) / math.sqrt(D)
    s = s.masked_fill(~keep[:, None], float("-inf"))
    p = torch.nan_to_num(torch.softmax(s, dim=-1), nan=0.0)
    return torch.einsum("bhqk,bkd->bhqd", p, v.float()[:, 0]).to(q.dtype)
