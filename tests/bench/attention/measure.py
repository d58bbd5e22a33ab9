"""Runs one shard on the GPU that is here: `measure.py SHARD --specs DIR --library PATH`; run.sh is the way in.

SPDX-License-Identifier: Apache-2.0"""
import argparse, math, os, statistics, sys, tempfile, threading, time
import cases, results
from variants import VARIANTS

BEGIN = time.monotonic()
HERE = os.path.dirname(os.path.abspath(__file__))
LOST = 75                                      # exit status: the GPU is lost to this process, the rest is in OUT.rest (run.sh goes on)
HANGS = 75                                     # seconds beyond its blocks after which a case has hung


def arguments(argv):
    a = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    a.add_argument("shard", choices=cases.SHARDS)
    a.add_argument("--specs", default=os.path.join(HERE, "../../../../shared/specs"), help="folder with paper, serving, flex")
    a.add_argument("--library", default=os.path.join(HERE, "../../../build/gpu"), help="libcubridge.so, or its folder")
    a.add_argument("--prototype", help="folder of a prototype: bench.py, nvrtc.py and its CUDA")
    a.add_argument("--seconds", type=float, default=cases.SHARD_SECONDS, help="of the whole run")
    a.add_argument("--out", help="record of this run; an earlier one there is gone on with")
    a.add_argument("--latest", help="rows that --resume and `stale` hold the cases against")
    a.add_argument("--resume", action="store_true", help="leave out cases whose rows are there, of the same kernel text")
    a.add_argument("--only", help="cases whose name has one of these words: a,b")
    a.add_argument("--impls", help="no implementations but these: cubridge,cudnn")
    a.add_argument("--extra", default="", help="peers whose wheels were brought, for full and causal: fa3,flashinfer")
    a.add_argument("--ahead", type=int, default=min(8, (os.cpu_count() or 2) // 2), help="processes that compile FlexAttention's kernels beforehand")
    a.add_argument("--numbers", help="cases by their places in the shard: 3,4")
    a.add_argument("--plan", action="store_true", help="print the plan and end")
    a.add_argument("--commit", default="unknown")
    return a.parse_args(argv)


def chosen(args):
    out, numbers = [], args.numbers.split(",") if args.numbers else None
    for number, case in enumerate(cases.SHARDS[args.shard]):
        if numbers is not None and str(number) not in numbers:
            continue
        if args.only and not any(word in case.name() for word in args.only.split(",")):
            continue
        impls = ["cubridge"] + [p for p in case.peers if p != "prototype" or args.prototype]
        if case.variant in cases.BASE and case.suite != "first-call":
            impls += [i for i in args.extra.split(",") if i]
        if args.impls:
            impls = [i for i in impls if i in args.impls.split(",")]
        if impls:
            out.append((case, tuple(impls)))
    return out


def path_of(spec, folder):
    """bench/ is our own folder of specifications; the built-in texts have no folder."""
    root, slash, file = spec.partition("/")
    if not slash:
        return spec
    return os.path.join(os.path.normpath(os.path.join(HERE, "../specs")), file) if root == "bench" else os.path.join(folder, spec)


def ask_kernel(library, case, specs, device="cuda", arch=""):
    variant = VARIANTS[case.variant]
    if case.suite == "portable":
        if device == "cuda":
            import torch
            arch = "sm_%d%d" % torch.cuda.get_device_capability()
        arch = arch.rstrip("a")  # the architecture without what only it has: the portable expert is chosen
    return library.kernel(path_of(variant.spec, specs), case.dtype, case.Hq // case.Hk, case.D, case.Dv, cases.with_lse(case),
                          0 if device == "cuda" else -1, arch, variant.constants, variant.operands(case.S, case.B, case.Hq, "cpu"))


def inputs(case, count):
    import peers, torch
    torch.manual_seed(1)
    make = lambda heads, dim: torch.randn(case.B, case.S, heads, dim, device="cuda", dtype=peers.DTYPES[case.dtype]).transpose(1, 2)
    return [(make(case.Hq, case.D), make(case.Hk, case.D), make(case.Hk, case.Dv)) for _ in range(count)]


class Lost(Exception):
    """This process can't use the GPU any more."""


def ours(kernel, case, operands, sets, dtype):
    import torch
    from peers import Prepared
    outs, launches = [], []
    for q, k, v in sets:
        o = torch.full((case.B, case.S, case.Hq, case.Dv), math.nan, device="cuda", dtype=dtype).transpose(1, 2)
        lse = torch.empty(case.B, case.Hq, case.S, 1, device="cuda") if cases.with_lse(case) else None
        launches.append(kernel.bind(q, k, v, o, lse, operands))
        outs.append(o)
    return Prepared(launches, lambda n: outs[n], kernel.describe())


class Run:
    def __init__(self, args, plan, ahead):
        import torch
        self.torch, self.args, self.plan, self.ahead = torch, args, plan, ahead
        gpu = torch.cuda.get_device_name()
        self.latest = results.load(args.latest, gpu) if args.latest else results.empty(gpu)
        self.record = results.load(args.out, gpu)
        self.record.update(gpu=gpu)
        from cubridge import Library
        from timing import Gauge
        self.gauge, self.store = Gauge(), tempfile.TemporaryDirectory()
        self.library = Library(args.library, self.store.name, workers=max(2, min(8, (os.cpu_count() or 2) // 2)))
        self.prototype = self.mosaic = self.mosaic_says = self.now = None
        self.rest = list(plan)

    def left(self):
        return self.args.seconds - (time.monotonic() - BEGIN)

    def say(self, text):
        print(f"[{time.monotonic() - BEGIN:5.0f} s] {text}", flush=True)

    def leave_out(self, case, impl, why):
        self.say(f"left out: {case.name()} {impl}: {why}")
        self.record["left_out"] = [r for r in self.record["left_out"] if (results.case_key(r), r["impl"]) != (case.key(), impl)]
        self.record["left_out"].append(dict(case.fields(), impl=impl, why=why))

    def adapt(self):
        """All kernels at once: the library makes some at a time, while FlexAttention's and JAX's are compiled by other processes."""
        import peers
        asked, jax = {}, [case for case, impls in self.plan if "mosaic" in impls]
        try:
            self.mosaic = peers.Mosaic(jax, cases.AHEAD) if jax else None
        except Exception as error:
            self.mosaic_says = str(error)
        for case, impls in self.plan:
            if "cubridge" in impls:
                key = cases.kernel_key(case)
                if key in asked:
                    continue
                try:
                    asked[key] = ask_kernel(self.library, case, self.args.specs)
                except Exception as error:
                    asked[key] = error
        for key, kernel in asked.items():
            try:
                asked[key] = kernel if isinstance(kernel, Exception) else kernel.ready()
            except Exception as error:
                asked[key] = error
        self.say(f"{len(asked)} kernels")
        self.kernels = asked
        done = self.ahead.wait(60)
        if self.ahead.processes:
            self.say(f"FlexAttention's kernels: {done} of {len(self.ahead.processes)} processes ended well")
        if self.mosaic:
            try:
                answer = self.mosaic.hello()
                self.say(f"JAX: {answer['made']} of {answer['of']} kernels made ahead")
            except peers.Unsupported as error:
                self.mosaic_says = str(error)

    def ceilings(self):
        from timing import block
        torch = self.torch
        a, b = (torch.randn(8192, 8192, device="cuda", dtype=torch.bfloat16) for _ in range(2))
        x = torch.empty(1 << 31, device="cuda", dtype=torch.uint8)
        y = torch.empty_like(x)
        product, copy = block([lambda: a @ b], 0.5, self.gauge), block([lambda: y.copy_(x)], 0.3, self.gauge)
        self.record["ceilings"] = dict(bf16_tflops=round(2 * 8192 ** 3 / product.median * 1e-6, 1),
                                       tb_per_s=round(2 * 2 ** 31 / copy.median * 1e-6, 2), **product.clocks)

    def prepare(self, impl, case, variant, operands, sets):
        import peers
        if impl == "cubridge":
            kernel = self.kernels[cases.kernel_key(case)]
            if isinstance(kernel, Exception):
                raise kernel
            return ours(kernel, case, operands, sets, peers.DTYPES[case.dtype])
        if impl in ("cudnn", "fa2"):
            cudnn = f"torch {self.torch.__version__}" + (f" cudnn {self.torch.backends.cudnn.version()}" if impl == "cudnn" else "")
            return peers.sdpa(case, sets, impl, cudnn)
        if impl in ("fa3", "flashinfer"):
            return getattr(peers, impl)(case, sets)
        if impl == "flex":
            return peers.flex(case, variant, operands, sets)
        if impl == "eager":
            return peers.eager(case, variant, path_of(variant.spec, self.args.specs), operands, sets)
        if impl == "prototype":
            self.prototype = self.prototype or peers.Prototype(self.args.prototype)
            return self.prototype.prepare(case, variant, operands, sets)
        if self.mosaic_says:
            raise peers.Unsupported(self.mosaic_says)
        try:
            answer = self.mosaic.prepare(case)
        except peers.Unsupported as error:
            if self.mosaic.process.poll() is not None:
                self.mosaic_says = str(error)
            raise
        return peers.Prepared(None, None, dict(source=self.mosaic.note["source"], **answer))

    def time(self, impl, prepared, seconds):
        from timing import REST, Block, block
        if impl == "mosaic":
            self.torch.cuda.synchronize()
            time.sleep(REST)
            self.gauge.start()
            answer = self.mosaic.block(seconds)
            return Block(answer["times"], self.gauge.stop(), None)
        return block(prepared.launches, seconds, self.gauge)

    def error(self, case, variant, operands, sets, prepared, n):
        from variants import error_of
        if prepared.launches is None:
            return self.mosaic.check(case, n)
        prepared.launches[n]()
        error = error_of(variant, operands, *sets[n], prepared.output(n))
        return error if math.isfinite(error) else 1e30  # a number that JSON has

    def check_gpu(self):
        """After a failure: whether this process can go on."""
        try:
            self.torch.cuda.synchronize()
            self.torch.ones(1, device="cuda").item()
        except Exception as error:
            raise Lost(f"the GPU is lost: {str(error).strip()[:200]}")

    def attempt(self, case, impl, function):
        """None where it failed; then the others go on without it."""
        try:
            return function()
        except Exception as error:
            why = f"{type(error).__name__}: {str(error).strip()[:300]}"
            self.leave_out(case, impl, why)
            try:
                self.check_gpu()
            except Lost as lost:
                raise Lost(f"{impl}: {why}; {lost}")
        return None

    def case(self, case, impls, seconds):
        """Every peer's block lies between two of ours."""
        from variants import count_pairs
        import timing
        self.record["left_out"] = [r for r in self.record["left_out"] if results.case_key(r) != case.key()]
        variant, sets = VARIANTS[case.variant], inputs(case, cases.SETS)
        operands = variant.operands(case.S, case.B, case.Hq, "cuda")
        pairs = count_pairs(variant, operands, case.S, case.B, "cuda")
        flop = 2 * (case.D + case.Dv) * case.Hq * pairs
        ready, errors = {}, {}


        def prepare(impl):
            prepared = self.prepare(impl, case, variant, operands, sets)
            return prepared, self.error(case, variant, operands, sets, prepared, 0)

        for impl in impls:
            if done := self.attempt(case, impl, lambda: prepare(impl)):
                ready[impl], errors[impl] = done
        blocks, before = {impl: [] for impl in ready}, {}
        others = [impl for impl in ready if impl != "cubridge"]
        order = others if "cubridge" not in ready else ["cubridge"] + [x for peer in others or [None] for x in (peer, "cubridge")]
        for impl in (i for i in order if i):
            if impl not in ready:
                continue
            before[impl] = len(blocks.get("cubridge", ()))
            if one := self.attempt(case, impl, lambda: self.time(impl, ready[impl], seconds)):
                blocks[impl].append(one)
            else:
                blocks.pop(impl), ready.pop(impl)
        for impl in list(ready):
            after = self.attempt(case, impl, lambda: self.error(case, variant, operands, sets, ready[impl], len(sets) - 1))
            if after is None:
                ready.pop(impl)
            else:
                errors[impl] = max(errors[impl], after)
        beside = {}
        for peer in (impl for impl in ready if impl != "cubridge" and "cubridge" in ready):
            beside[peer] = statistics.mean(b.median for b in blocks["cubridge"][before[peer] - 1:before[peer] + 1])
        rows = []
        for impl, p in ready.items():
            times = [t for b in blocks[impl] for t in b.times]
            us = statistics.median(times)
            row = dict(commit=self.args.commit, source=p.note.pop("source"), **case.fields(), impl=impl, us=round(us, 2),
                       tflops=round(flop / us * 1e-6, 1), spread=timing.spread(times), error=errors[impl], date=results.now(),
                       pairs=pairs, launches=len(times), **blocks[impl][-1].clocks, host_us=blocks[impl][-1].host_us, **p.note)
            if impl == "cubridge" and len(blocks[impl]) > 1:
                medians = [b.median for b in blocks[impl]]
                row["drift"] = round(max(medians) / min(medians) - 1, 4)
            if beside.get(impl):
                row.update(us_beside=round(beside[impl], 2), ratio=round(us / beside[impl], 4))
            rows.append(row)
        keep = [r for r in self.record["rows"] if results.case_key(r) != case.key()]
        self.record["rows"] = keep + rows
        said = " ".join(f"{r['impl']} {r['tflops']}{'!' if results.wrong(r) else ''}" + (f" ({r['ratio']:.2f}x)" if "ratio" in r else "")
                        for r in rows)
        self.say(f"{case.name()}: {said} [{seconds:.2f} s blocks, {rows[0].get('mhz')} MHz, {rows[0].get('watts')} W]" if rows else case.name())

    def save(self):
        self.record["date"] = results.now()
        results.save(self.args.out, self.record)

    def close(self):
        self.ahead.wait(0)
        if self.mosaic:
            self.mosaic.close()
        try:
            self.torch.cuda.synchronize()
            self.library.close()
        except RuntimeError as error:  # the GPU is lost; the rows are saved
            self.say(f"closing: {error}")
        self.store.cleanup()

    def lost(self, why):
        """The rows are saved, what is left is written down, and this process ends."""
        case, _ = self.rest.pop(0)
        self.leave_out(case, "case", why)
        self.save()
        shard = cases.SHARDS[self.args.shard]
        with open(self.args.out + ".rest", "w") as f:
            f.write(f"{','.join(str(shard.index(c)) for c, _ in self.rest) or '-'} {max(1, int(self.left()))}\n")
        sys.stdout.flush(), sys.stderr.flush()
        if self.mosaic:
            self.mosaic.process.kill()
        self.store.cleanup()
        os._exit(LOST)

    def watch(self):
        """A kernel that never ends is ended with its process."""
        while True:
            time.sleep(1)
            now = self.now
            if now is not None and time.monotonic() > now:
                self.lost(f"nothing came back for {HANGS} s beyond its blocks")

    def all(self):
        self.adapt()
        if any(case.suite == "base" for case, _ in self.plan):
            self.ceilings()
        todo = list(self.plan)
        if self.args.resume:
            both = results.merge(self.latest, self.record) if self.record["rows"] else self.latest
            sources = {}
            for key, kernel in self.kernels.items():
                sources[key] = None if isinstance(kernel, Exception) else kernel.describe()["source"]
            todo = [(c, i) for c, i in todo if not results.complete(
                both, c, i, sources.get(cases.kernel_key(c)))]
            self.say(f"{len(self.plan) - len(todo)} cases are there already")
        threading.Thread(target=self.watch, daemon=True).start()
        while todo:
            case, impls = todo[0]
            seconds = cases.block_seconds(self.left(), todo)
            if self.left() < cases.fixed_seconds(case, impls) + cases.blocks_of(impls) * (cases.LEAST_BLOCK + cases.REST):
                self.say(f"out of time: {len(todo)} cases are left for --resume, from {case.name()}")
                return False
            self.rest = list(todo)
            self.now = time.monotonic() + HANGS + cases.blocks_of(impls) * (seconds + cases.REST)
            try:
                self.attempt(case, "case", lambda: self.case(case, impls, seconds))
            except Lost as error:
                self.now = None
                self.lost(str(error))
            self.now = None
            todo.pop(0)
            self.save()
            self.torch.cuda.empty_cache()
        return True


def main(argv=None):
    args = arguments(argv)
    plan = chosen(args)
    lines, _ = cases.plan(args.shard, plan, args.seconds)
    print("\n".join(lines), flush=True)
    if args.plan:
        return 0
    os.environ.setdefault("PYTORCH_NVML_BASED_CUDA_CHECK", "1")  # so that asking does not touch the GPU before a fork
    try:
        import torch
        from ahead import Ahead
        ahead = Ahead([c for c, impls in plan if "flex" in impls], 0 if args.shard == "first-call" or args.resume else args.ahead)
        if not torch.cuda.is_available():
            raise ImportError("PyTorch sees no GPU")
    except ImportError as error:
        print(f"not run: {error}", file=sys.stderr)
        return 77
    if args.shard == "first-call":
        import first_call
        return first_call.main(args, plan)
    run = Run(args, plan, ahead)
    try:
        done = run.all()
    finally:
        if run.record["rows"]:
            run.save()
        run.close()
    bad = [r for r in run.record["rows"] if r["impl"] == "cubridge" and results.wrong(r)]
    for row in bad:
        print(f"wrong: {row['variant']} {row['dtype']} S={row['S']}: error {row['error']:.2g}")
    lost = [r for r in run.record["left_out"] if r["impl"] in ("cubridge", "case")]
    run.say(f"{len(run.record['rows'])} rows in {args.out}")
    return 1 if bad or lost else 0 if done else 3


if __name__ == "__main__":
    sys.exit(main())
