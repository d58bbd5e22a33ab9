# Dilated causal attention from the bottom right, with a learned sink and a gate.
import torch


def attention(q, k, v, sinks: "f32[Hq]", gate: "f32[B, Sq, Hq]"):
    group = q.size(1) // k.size(1)
    k = k.repeat_interleave(group, 1)
    v = v.repeat_interleave(group, 1)
    s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5
    i = torch.arange(q.size(2))[:, None] + k.size(2) - q.size(2)
    j = torch.arange(k.size(2))[None, :]
    s = s.masked_fill(~((j <= i) & ((i - j) % 4 == 0)), -float("inf"))
    sink = sinks[None, :, None, None].expand(s.size(0), -1, s.size(2), 1)
    p = torch.softmax(torch.cat([s, sink], -1), -1)[..., :-1]
    return p @ v * torch.sigmoid(gate.transpose(1, 2))[..., None]
