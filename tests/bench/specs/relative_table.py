# A learned bias for each head and distance, not clipped: table is float [Hq, 2 * S - 1]; every pair is visible.
# SPDX-License-Identifier: Apache-2.0
import math
import torch


def attention(q, k, v, table):
    g = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(g, 1), v.repeat_interleave(g, 1)
    s = q @ k.transpose(-1, -2) / math.sqrt(q.size(-1))
    distance = torch.arange(q.size(2))[:, None] - torch.arange(k.size(2))[None, :]
    s = s + table[:, distance + (k.size(2) - 1)]
    return torch.softmax(s, dim=-1) @ v
