# paper/sigmoid.py spelled differently: queries grouped by KV head, method sigmoid.
import math
import torch


def attention(q, k, v):
    b, hq, sq, d = q.shape
    hk, sk = k.shape[1], k.shape[2]
    s = q.view(b, hk, hq // hk, sq, d) @ k[:, :, None].transpose(-1, -2)
    s = s * (1.0 / d ** 0.5) + -math.log(sk)
    keep = torch.ones(sq, sk, dtype=torch.bool).tril()
    p = s.masked_fill(keep.logical_not(), float("-inf")).sigmoid()
    return (p @ v[:, :, None]).reshape(b, hq, sq, v.size(-1))
