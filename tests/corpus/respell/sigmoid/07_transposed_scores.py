# paper/sigmoid.py spelled differently: keys down the rows.
import math
import torch


def attention(q, k, v):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    n = k.size(2)
    st = k @ q.transpose(-1, -2) / q.size(-1) ** 0.5 - math.log(n)
    j, i = torch.arange(n)[:, None], torch.arange(q.size(2))[None, :]
    st = st.masked_fill(i < j, -torch.inf)
    return torch.sigmoid(st).transpose(-1, -2) @ v
