"""From a specification to its first launch in a warm process with nothing stored: ours, and FlexAttention with the same mask.

The process has made another kernel each way before the clock starts; a launch at a second length is timed too.
SPDX-License-Identifier: Apache-2.0"""
import contextlib, statistics, time
import results
from variants import VARIANTS

REPEATS, SECOND = 3, 2048


def inputs(case, S):
    import torch
    from peers import DTYPES
    B = case.B * case.S // S
    make = lambda heads, dim: torch.randn(B, S, heads, dim, device="cuda", dtype=DTYPES[case.dtype]).transpose(1, 2)
    return [(make(case.Hq, case.D), make(case.Hk, case.D), make(case.Hk, case.Dv))]


def timed(function):
    import torch
    torch.cuda.synchronize()
    begin = time.perf_counter()
    out = function()
    torch.cuda.synchronize()
    return (time.perf_counter() - begin) * 1e3, out


def operands_at(case, S):
    return VARIANTS[case.variant].operands(S, case.B * case.S // S, case.Hq, "cuda")


def ours(case, args):
    """(first call, second length, source): a context of its own each time, that keeps nothing."""
    from cubridge import Library
    import measure, torch
    library = Library(args.library, "")
    try:
        shapes = []
        for S in (case.S, SECOND):
            sets = inputs(case, S)
            shapes.append((S, sets, operands_at(case, S), torch.empty_like(sets[0][0])))
        S, sets, operands, o = shapes[0]
        first, kernel = timed(lambda: launched(measure.ask_kernel(library, case, args.specs).ready(), sets, o, operands))
        S, sets, operands, o = shapes[1]
        again, _ = timed(lambda: launched(measure.ask_kernel(library, case, args.specs).ready(), sets, o, operands))
        return first, again, kernel.describe()
    finally:
        library.close()


def launched(kernel, sets, o, operands):
    kernel.bind(*sets[0], o, None, operands)()
    return kernel


@contextlib.contextmanager
def cold():
    """Inductor's and Triton's caches are empty folders meanwhile."""
    import torch._inductor.utils as utils
    fresh = getattr(utils, "fresh_cache", None) or utils.fresh_inductor_cache
    with fresh():
        yield


def flex(case):
    """(first call, second length, milliseconds of the BlockMask within the first)."""
    import torch
    from peers import flex_parts
    from torch.nn.attention.flex_attention import flex_attention
    variant, took, mask_ms = VARIANTS[case.variant], [], 0.0
    torch._dynamo.reset()
    compiled = torch.compile(flex_attention, dynamic=False)
    with cold():
        for S in (case.S, SECOND):
            sets, operands = inputs(case, S), operands_at(case, S)

            def call():
                score, blocks, ms = flex_parts(variant, operands, S, sets[0][0].size(0), "cuda")
                compiled(*sets[0], score_mod=score, block_mask=blocks, enable_gqa=case.Hq != case.Hk)
                return ms

            ms, mask = timed(call)
            took.append(ms)
            mask_ms = mask_ms or mask
    return took[0], took[1], mask_ms


def main(args, plan):
    import torch
    record = results.load(args.out, torch.cuda.get_device_name())
    begin = time.monotonic()
    for warm in (lambda: ours(plan[0][0], args), lambda: flex(plan[0][0])):
        with contextlib.suppress(Exception):  # what fails here fails below, and is said there
            warm()
    for case, impls in plan:
        rows = []
        for impl in (i for i in impls if i in ("cubridge", "flex")):
            if time.monotonic() - begin > args.seconds - 30:
                print(f"out of time: {case.name()} and after it", flush=True)
                return 3
            try:
                runs = [ours(case, args) if impl == "cubridge" else flex(case) for _ in range(REPEATS)]
            except Exception as error:
                print(f"left out: {case.name()} {impl}: {error}", flush=True)
                record["left_out"].append(dict(case.fields(), impl=impl, why=str(error)[:300]))
                continue
            firsts = [r[0] for r in runs]
            note = runs[0][2] if impl == "cubridge" else dict(block_mask_ms=round(statistics.median(r[2] for r in runs), 1),
                                                              source=f"torch {torch.__version__}")
            middle = statistics.median(firsts)
            rows.append(dict(commit=args.commit, **case.fields(), impl=impl, us=round(middle * 1e3), tflops=None,
                             spread=round((max(firsts) - min(firsts)) / middle, 3), error=None, date=results.now(),
                             second_length_ms=round(statistics.median(r[1] for r in runs), 2), **note))
        if len(rows) == 2:
            rows[0]["of_flex"] = round(rows[0]["us"] / rows[1]["us"], 3)
        record["rows"] = [r for r in record["rows"] if results.case_key(r) != case.key()] + rows
        record["date"] = results.now()
        results.save(args.out, record)
        print(f"{case.name()}: " + ", ".join(f"{r['impl']} {r['us'] / 1e3:.0f} ms, other length {r['second_length_ms']} ms" for r in rows),
              flush=True)
    return 0
