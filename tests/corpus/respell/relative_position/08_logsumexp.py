# paper/relative_position.py spelled differently: weights by logsumexp, bias table transposed first.
import math
import torch


def attention(q, k, v, bias, max_distance: int = 128):
    g = q.size(1) // k.size(1)
    kx = k.unsqueeze(2).repeat(1, 1, g, 1, 1).flatten(1, 2)
    vx = v.unsqueeze(2).repeat(1, 1, g, 1, 1).flatten(1, 2)
    idx = torch.arange(k.size(2)).reshape(1, -1) - torch.arange(q.size(2)).reshape(-1, 1)
    idx = idx.clamp(min=-max_distance).clamp(max=max_distance) + max_distance
    add = bias.t()[idx].permute(2, 0, 1)
    s = torch.matmul(q, kx.transpose(2, 3)).div(math.sqrt(q.size(-1))).add(add)
    return torch.exp(s - torch.logsumexp(s, dim=-1, keepdim=True)) @ vx
