# Masks that keep one residue class, as FlexAttention functions. A scored one masks by -inf.
import torch

CAP = 15.0
WINDOW = 96
LENGTH = 100
SINKS = 6
slopes = torch.empty(32)       # float [Hq]
document = torch.empty(8192)   # int [S]


def every_third(b, h, q, kv):
    return (q >= kv) & ((q - kv) % 3 == 0)


def every_sixteenth(b, h, q, kv):
    return (q >= kv) & (q % 16 == kv % 16)


def both_sides(b, h, q, kv):
    return (q - kv) % 5 == 0


def shifted(b, h, q, kv):
    return (q >= kv) & ((q - kv) % 4 == 3)


def mirrored(b, h, q, kv):
    return (q + kv) % 4 == 1


def window(b, h, q, kv):
    return (q >= kv) & (q - kv <= WINDOW) & ((q - kv) % 4 == 0)


def window_or_sinks(b, h, q, kv):
    near = (q >= kv) & (q - kv <= WINDOW) & ((q - kv) % 4 == 0)
    first = (kv < 8) & ((kv - q) % 8 == 0) & (q >= kv)
    return near | first


def keys_alone(b, h, q, kv):
    return (q >= kv) & (kv % 8 == 0)


def within_documents(b, h, q, kv):
    return (q >= kv) & ((q - kv) % 4 == 0) & (document[q] == document[kv])


def up_to_a_length(b, h, q, kv):
    return ((q - kv) % 4 == 0) & (kv < LENGTH)


def alibi(score, b, h, q, kv):
    return torch.where((q >= kv) & ((q - kv) % 4 == 0), score + (kv - q) * slopes[h], -float("inf"))


def softcap(score, b, h, q, kv):
    return torch.where((q >= kv) & ((q - kv) % 4 == 1), CAP * torch.tanh(score / CAP), -float("inf"))


def by_distance(score, b, h, q, kv):
    return torch.where((q >= kv) & ((q - kv) % 2 == 0), score - torch.log1p((q - kv) * 1.0), -float("inf"))


def window_sinks_and_every_8th(b, h, q, kv):
    return (q >= kv) & ((q - kv < WINDOW) | (kv < SINKS) | (kv % 8 == 0))


def window_and_every_5th(b, h, q, kv):
    return (q >= kv) & ((q - kv < 7) | (kv % 5 == 3))


def band_or_every_4th(b, h, q, kv):
    return (torch.abs(q - kv) < WINDOW) | (kv % 4 == 0)


def window_and_every_8th_with_alibi(score, b, h, q, kv):
    keep = (q >= kv) & ((q - kv < WINDOW) | (kv % 8 == 0))
    return torch.where(keep, score + (kv - q) * slopes[h], -float("inf"))


def every_8th_up_to_a_length(b, h, q, kv):
    return (kv < LENGTH) & ((torch.abs(q - kv) < WINDOW) | (kv % 8 == 0))
