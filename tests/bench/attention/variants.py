"""The variants that are timed: their specification, operands, and the same function as FlexAttention's modifications.

A mask keeps (b, h, i, j); a score function changes the scaled score. Both work on scalars (FlexAttention), on grids (the
reference, counting) and, where no torch function is in them, on plain numbers. SPDX-License-Identifier: Apache-2.0"""
import dataclasses, math
from typing import Callable, Optional

try:
    import torch
except ImportError:  # plans, merging and reports need none
    torch = None

WINDOW, SINKS, DISTANCE = 1024, 64, 128


@dataclasses.dataclass(frozen=True)
class Variant:
    spec: str                                  # FILE[:FUNCTION[+MASK]] below a folder of specifications, or a built-in text
    operands: Callable = lambda S, B, H, device: {}
    mask: Optional[Callable] = None            # operands -> (b, h, i, j) -> kept
    score: Optional[Callable] = None           # operands -> (s, b, h, i, j) -> s
    weights: str = "softmax"                   # or sigmoid, relu: what FlexAttention has not
    constants: dict = dataclasses.field(default_factory=dict)
    by_batch: bool = False                     # the mask reads b
    prototype: Optional[str] = None            # its name there


def documents(lengths, S, device):
    """Numbers of documents of about these shares of S."""
    ends = [round(S * sum(lengths[:n + 1]) / sum(lengths)) for n in range(len(lengths))]
    i = torch.arange(S, device=device)
    return sum((i >= end).int() for end in ends).int()


def slopes(H, device):
    return torch.exp2(-torch.arange(1, H + 1, device=device, dtype=torch.float32) * 8 / H)


def table(rows, H, device):
    generator = torch.Generator().manual_seed(7)
    return (torch.randn(H, rows, generator=generator) * 0.5).to(device)


def prefixes(S, B, device):
    """From none to half, a quarter on average."""
    return torch.tensor([(S // 4) if B == 1 else b * (S // 2) // (B - 1) for b in range(B)], device=device, dtype=torch.int32)


def causal(o):
    return lambda b, h, i, j: j <= i


def prefix_mask(o):
    prefix = o["prefix"]
    return lambda b, h, i, j: (j <= i) | (j < prefix)


def global_window(o):
    window = o["window"]
    return lambda b, h, i, j: (abs(i - j) <= window) | (i < 2 * window) | (j < 2 * window)


def shared_question(o):
    doc = o["doc"]
    return lambda b, h, i, j: ((doc[i] == doc[j]) & (i >= j)) | ((doc[i] != 0) & (doc[j] == 0))


def blockwise(o):
    doc, last = o["doc"], o["last"]
    return lambda b, h, i, j: ((doc[i] == doc[j]) & (i >= j)) | ((doc[i] == last) & (doc[j] != last))


def document(o):
    doc = o["document_id"]
    return lambda b, h, i, j: (i >= j) & (doc[i] == doc[j])


def window(o):
    return lambda b, h, i, j: (j <= i) & (i - j < WINDOW)


def window_sinks(o):
    return lambda b, h, i, j: (j <= i) & ((i - j < WINDOW) | (j < SINKS))


def window_sinks_strided(o):
    return lambda b, h, i, j: (j <= i) & ((i - j < WINDOW) | (j < SINKS) | (j % 8 == 0))


def dilated(o):
    return lambda b, h, i, j: (j <= i) & ((i - j) % 4 == 0)


def prefix_of(name):
    def mask(o):
        prefix = o[name]
        return lambda b, h, i, j: (j <= i) | (j < prefix[b])
    return mask


def clipped_bias(o):
    bias = o["bias"]
    return lambda s, b, h, i, j: s + bias[h, (j - i).clamp(-DISTANCE, DISTANCE) + DISTANCE]


def table_bias(o):
    bias, zero = o["table"], (o["table"].size(1) - 1) // 2
    return lambda s, b, h, i, j: s + bias[h, i - j + zero]


def alibi(o):
    slope = o["slopes"]
    return lambda s, b, h, i, j: s - slope[h] * abs(i - j)


def softcap(cap):
    return lambda o: lambda s, b, h, i, j: cap * torch.tanh(s / cap)


VARIANTS = {
    "full": Variant("bidirectional", prototype="full"),
    "causal": Variant("serving/causal_gqa.py", mask=causal, prototype="causal"),
    # the paper's eight
    "prefix_lm": Variant("paper/prefix_lm.py", lambda S, B, H, d: {"prefix": S // 4}, prefix_mask, prototype="prefix"),
    "global_window": Variant("paper/global_sliding_window.py", lambda S, B, H, d: {"window": S // 16}, global_window),
    "share_question": Variant("paper/share_question.py", lambda S, B, H, d: {"doc": documents([4, 3, 3, 3, 3], S, d)}, shared_question),
    "causal_blockwise": Variant("paper/causal_blockwise.py", lambda S, B, H, d: {"doc": documents([1] * 8, S, d), "last": 7}, blockwise),
    "relative_position": Variant("paper/relative_position.py", lambda S, B, H, d: {"bias": table(2 * DISTANCE + 1, H, d)}, None, clipped_bias),
    "relu": Variant("paper/relu.py", mask=causal, weights="relu"),
    "sigmoid": Variant("paper/sigmoid.py", mask=causal, weights="sigmoid"),
    "comb": Variant("paper/comb.py", lambda S, B, H, d: {"prefix": S // 4}, prefix_mask, softcap(50.0), "sigmoid"),
    # what serving uses
    "window_1024": Variant("serving/sliding_window.py", mask=window, constants={"window": WINDOW}, prototype="window"),
    "document": Variant("flex/mods.py:document_causal", lambda S, B, H, d: {"document_id": documents([8, 4, 2, 1, 1], S, d)}, document),
    "alibi": Variant("serving/alibi.py", lambda S, B, H, d: {"slopes": slopes(H, d)}, causal, alibi, prototype="alibi"),
    "softcap": Variant("flex/mods.py:tanh_softcap+causal", mask=causal, score=softcap(20.0), prototype="softcap"),
    "window_sinks": Variant("bench/masks.py:window_and_sinks", mask=window_sinks),
    "prefix_of_request": Variant("bench/masks.py:prefix_of_request", lambda S, B, H, d: {"prefix_length": prefixes(S, B, d)},
                                 prefix_of("prefix_length"), by_batch=True),
    "relative_table": Variant("bench/relative_table.py", lambda S, B, H, d: {"table": table(2 * S - 1, H, d)}, None, table_bias),
    # structure of masks
    "dilated_causal": Variant("flex/mods.py:dilated_causal", mask=dilated),
    "window_sinks_strided": Variant("bench/masks.py:window_sinks_and_every_8th", mask=window_sinks_strided),
}
PAPER = ("prefix_lm", "global_window", "share_question", "causal_blockwise", "relative_position", "relu", "sigmoid", "comb")
SERVING = ("window_1024", "document", "alibi", "softcap", "window_sinks", "prefix_of_request", "relative_table")


def count_pairs(variant, operands, S, B, device="cpu", chunk=1024):
    """Pairs (request, row, key) that the mask keeps, of one head: every one is looked at."""
    if variant.mask is None:
        return B * S * S
    keep = variant.mask(operands)
    j = torch.arange(S, device=device)[None, :]
    total = 0
    for b in range(B if variant.by_batch else 1):
        at = torch.tensor(b, device=device)
        for begin in range(0, S, chunk):
            i = torch.arange(begin, min(begin + chunk, S), device=device)[:, None]
            total += int(keep(at, at, i, j).expand(i.size(0), S).sum())
    return total if variant.by_batch else total * B


def reference(variant, operands, q, k, v, b, h, rows):
    """Rows of the output in float64. q, k, v are [B, H, S, D]."""
    group = q.size(1) // k.size(1)
    s = q[b, h, rows].double() @ k[b, h // group].double().T * q.size(-1) ** -0.5
    i, j = rows[:, None], torch.arange(k.size(2), device=q.device)[None, :]
    at, head = torch.tensor(b, device=q.device), torch.tensor(h, device=q.device)
    if variant.score is not None:
        s = variant.score(operands)(s, at, head, i, j).double()
    keep = None if variant.mask is None else variant.mask(operands)(at, head, i, j)
    if variant.weights == "relu":
        p = torch.relu(s) / k.size(2)
        p = p if keep is None else p.masked_fill(~keep, 0.0)
    else:
        if variant.weights == "sigmoid":
            s = s - math.log(k.size(2))
        s = s if keep is None else s.masked_fill(~keep, -math.inf)
        p = torch.sigmoid(s) if variant.weights == "sigmoid" else torch.softmax(s, -1)
    return p @ v[b, h // group].double()


def error_of(variant, operands, q, k, v, o):
    """Relative L2 error of o on rows from the ends and the middle of the first and the last head."""
    B, H, S = q.shape[:3]
    some = min(32, S)
    rows = torch.cat([torch.arange(begin, begin + some) for begin in {0, (S - some) // 2, S - some}]).to(q.device)
    off = size = 0.0
    for b, h in {(0, 0), (B - 1, H - 1)}:
        expected = reference(variant, operands, q, k, v, b, h, rows)
        off += (o[b, h, rows].double() - expected).square().sum().item()
        size += expected.square().sum().item()
    return math.sqrt(off / size)
