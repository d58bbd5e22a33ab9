"""What is measured: shards, their cases, and a plan of the time that each takes. SPDX-License-Identifier: Apache-2.0"""
import dataclasses
from timing import REST
from variants import PAPER, SERVING, VARIANTS

TOKENS = 16384                                 # of a launch: batch times length
LENGTHS = (1024, 2048, 4096, 8192, 16384)
SHARD_SECONDS = 480
SETS = 3                                       # input sets that the launches of a block go through in turn
LEAST_BLOCK, MOST_BLOCK = 0.35, 0.5            # seconds, beside the rest before each (timing)


@dataclasses.dataclass(frozen=True)
class Case:
    suite: str
    variant: str
    dtype: str
    S: int
    Hq: int = 32
    Hk: int = 32
    D: int = 128
    Dv: int = 128
    peers: tuple = ()

    @property
    def B(self):
        return TOKENS // self.S

    def key(self):
        return (self.suite, self.variant, self.dtype, self.S, self.B, self.Hq, self.Hk, self.D, self.Dv)

    def fields(self):
        return dict(zip(("suite", "variant", "dtype", "S", "B", "Hq", "Hk", "D", "Dv"), self.key()))

    def name(self):
        heads = f"{self.Hq}/{self.Hk}" + ("" if self.D == self.Dv == 128 else f" D={self.D}" + ("" if self.D == self.Dv else f":{self.Dv}"))
        return f"{self.variant} {self.dtype} S={self.S} {heads}"


def peers_of(variant, dtype, Hq=32, Hk=32, D=128, Dv=128, S=4096):
    v, out = VARIANTS[variant], []
    if variant in ("full", "causal"):
        out += ["cudnn"] + (["fa2"] if D == Dv else [])
        if D == Dv == 128:
            out.append("mosaic")
    if v.weights == "softmax" and D == Dv and D & (D - 1) == 0:
        out.append("flex")
    if v.prototype and dtype == "bf16" and D == Dv == 128:
        out.append("prototype")
    if S == 1024 and Hq == 32 and variant not in ("full", "causal"):
        out.append("eager")
    return tuple(out)


def case(suite, variant, dtype, S, Hq=32, Hk=32, D=128, Dv=128):
    return Case(suite, variant, dtype, S, Hq, Hk, D, Dv, peers_of(variant, dtype, Hq, Hk, D, Dv, S))


BASE = ("full", "causal")
MANY = ("causal",) + PAPER + SERVING           # causal is what the weights that are no softmax are held against
PORTABLE = ("prefix_lm", "alibi", "document", "window_1024")
GROUPS = ((64, 8), (128, 8))
SHARDS = {
    "base-bf16": [case("base", v, "bf16", S) for S in LENGTHS for v in BASE],
    "base-fp16": [case("base", v, "fp16", S) for S in LENGTHS for v in BASE],
    "base-gqa": [case("base", v, "bf16", S, *g) for S in LENGTHS for v in BASE for g in GROUPS],
    "base-gqa-fp16": [case("base", v, "fp16", S, *g) for S in LENGTHS for v in BASE for g in GROUPS],
    "variants-1k": [case("variants", v, "fp16", 1024) for v in MANY],
    "variants-4k": [case("variants", v, "fp16", 4096) for v in MANY] + [case("variants", "prefix_lm", "fp16", 8192)],
    "variants-16k": [case("variants", v, "fp16", 16384) for v in MANY],
    "variants-gqa": [case("variants", v, "fp16", 4096, *g) for v in MANY for g in GROUPS],
    "variants-bf16": [case("variants", v, "bf16", 4096) for v in MANY] + [case("variants", "prefix_lm", "bf16", 8192)],
    "dims": [case("dims", v, dtype, S, H, H, D, Dv) for D, Dv, H in ((64, 64, 32), (256, 256, 16), (192, 128, 32))
             for dtype in ("bf16", "fp16") for S in (4096, 16384) for v in BASE],
    "structure": [case("structure", v, dtype, S) for v in ("dilated_causal", "window_sinks_strided")
                  for dtype, S in (("fp16", 4096), ("fp16", 16384), ("bf16", 4096))],
    # the expert that needs no Hopper, on this GPU; its variants are held against its own causal kernel
    "portable": [Case("portable", v, dtype, S, peers=("fa2",)) for dtype in ("bf16", "fp16") for S in (4096, 16384) for v in BASE]
                + [Case("portable", v, "fp16", S) for S in (4096, 16384) for v in PORTABLE],
    "first-call": [case("first-call", v, "bf16", 4096) for v in ("causal", "prefix_lm", "window_1024", "document", "alibi",
                                                                 "softcap", "relative_table", "share_question")],
}

# Seconds that are spent on anything but blocks, as seen or guessed; the plan is made anew as the run goes.
START = 25                                     # PyTorch, the GPU, the first compilation of each
AHEAD = 20                                     # how long the JAX process compiles before the first case
FIXED = {"case": 0.4, "cubridge": 0.3, "cudnn": 0.3, "fa2": 0.3, "flex": 1.0, "mosaic": 3.0, "prototype": 0.6, "eager": 0.6,
         "fa3": 0.6, "flashinfer": 2.0, "kernel": 0.8, "first-call": 25.0}


def with_lse(c):
    """Where the peers write one too; weights that are no softmax have none."""
    return c.suite in ("base", "dims", "portable")


def kernel_key(c):
    """One kernel serves any length and batch."""
    return (c.variant, c.dtype, c.Hq // c.Hk, c.D, c.Dv, with_lse(c), c.suite == "portable")


def fixed_seconds(c, impls):
    return FIXED["first-call"] if c.suite == "first-call" else FIXED["case"] + sum(FIXED[i] for i in impls)


def blocks_of(impls):
    """Ours, a peer, ours, the next peer, ours...; ours twice where it is alone."""
    return max(2, 2 * len(impls) - 1)


def block_seconds(left, cases):
    """Seconds of a block so that these cases (with their impls) take what is left."""
    fixed = sum(fixed_seconds(c, impls) for c, impls in cases)
    blocks = sum(blocks_of(impls) for _, impls in cases)
    return min(MOST_BLOCK, max(LEAST_BLOCK, 0.92 * (left - fixed) / max(1, blocks) - REST))


def plan(name, cases, seconds):
    """Lines for people, and whether one run will do."""
    timed = [c for c, _ in cases if c.suite != "first-call"]
    start = START + FIXED["kernel"] * len({kernel_key(c) for c in timed})
    block = block_seconds(seconds - start, cases)
    lines, total = [], start
    for c, impls in cases:
        cost = fixed_seconds(c, impls) + (0 if c.suite == "first-call" else blocks_of(impls) * (block + REST))
        total += cost
        lines.append(f"  {c.name():44s} {' '.join(impls):50s} {cost:6.1f} s")
    head = f"{name}: {len(cases)} cases, about {total:.0f} s of {seconds}, blocks of {block:.2f} s"
    enough = total <= seconds * 1.02
    if not enough:
        head += "; more than one run: the rest with --resume"
    return [head] + lines, enough
