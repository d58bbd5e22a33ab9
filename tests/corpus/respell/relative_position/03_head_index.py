# paper/relative_position.py spelled differently: bias indexed by head and position tensors together.
import torch
import torch.nn.functional as F


def attention(q, k, v, bias, max_distance: int = 128):
    g = q.size(1) // k.size(1)
    k, v = (torch.repeat_interleave(t, g, dim=1) for t in (k, v))
    h = torch.arange(q.size(1)).view(-1, 1, 1)
    i = torch.arange(q.size(2)).view(1, -1, 1)
    j = torch.arange(k.size(2)).view(1, 1, -1)
    s = torch.matmul(q, k.mT) * (1.0 / q.size(-1) ** 0.5)
    s = s + bias[h, (j - i).clamp(-max_distance, max_distance) + max_distance]
    return F.softmax(s, dim=-1).matmul(v)
