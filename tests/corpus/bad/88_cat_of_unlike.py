# expect: kind=shape line=7 mentions=cat
import torch


def attention(q, k, v):
    s = q @ k.mT
    s = torch.cat([s, q[:, :, :, 0]], dim=-1)
    return s.softmax(-1) @ v
