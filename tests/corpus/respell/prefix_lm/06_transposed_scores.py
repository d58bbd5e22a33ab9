# paper/prefix_lm.py spelled differently: scores with keys down the rows, softmax over dim -2.
import math
import torch


def attention(q, k, v, prefix: int):
    rep = q.size(1) // k.size(1)
    k, v = [t.repeat_interleave(rep, dim=1) for t in (k, v)]
    st = k @ q.transpose(-1, -2)
    st = st / math.sqrt(k.size(-1))
    j = torch.arange(k.size(-2))[:, None]
    i = torch.arange(q.size(-2))[None, :]
    st = st.masked_fill((i < j) & (prefix <= j), float("-inf"))
    pt = torch.softmax(st, dim=-2)
    return pt.transpose(-1, -2) @ v
