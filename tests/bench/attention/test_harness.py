"""A whole run with a CPU in the GPU's place: what is timed is eager PyTorch, so figures mean nothing; rows, errors, what is left out
and resuming are looked at. Skipped where PyTorch is missing. SPDX-License-Identifier: Apache-2.0"""
import contextlib, io, os, sys, tempfile, time, unittest
from unittest import mock

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, measure, results
from variants import VARIANTS

try:
    import torch
    import peers
    from torch.overrides import TorchFunctionMode
except ImportError:
    torch, TorchFunctionMode = None, object
SPECS = os.environ.get("CUBRIDGE_SPECS", os.path.join(measure.HERE, "../../../../shared/specs"))


class OnCpu(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        if "cuda" in str(kwargs.get("device", "")):
            kwargs["device"] = "cpu"
        return function(*["cpu" if a == "cuda" and isinstance(a, str) else a for a in args], **kwargs)


class Event:
    def __init__(self, enable_timing):
        pass

    def record(self):
        self.at = time.perf_counter()

    def elapsed_time(self, other):
        return (other.at - self.at) * 1e3


class Library:
    """Kernels by eager PyTorch; of `broken` variants they add what they should not."""
    broken, source = (), "text 1"

    def __init__(self, *_, **__):
        pass

    def close(self):
        pass

    def kernel(self, path, dtype, group, D, Dv, lse, device, arch, constants, operands):
        variant = next(v for v in VARIANTS.values() if path.endswith(v.spec.removeprefix("bench/")))
        return Kernel(variant, path, any(VARIANTS[b] is variant for b in self.broken), self.source)


class Kernel:
    def __init__(self, variant, path, broken, source):
        self.variant, self.path, self.broken, self.source = variant, path, broken, source

    def ready(self):
        return self

    def describe(self):
        return dict(source=self.source, made_by="rules", expert="eager")

    def bind(self, q, k, v, o, lse, operands):
        run = peers.eager_function(self.variant, self.path, operands)
        return lambda: o.copy_(run(q.float(), k.float(), v.float()) + (0.1 if self.broken else 0.0))


@unittest.skipUnless(torch, "no PyTorch")
class Harness(unittest.TestCase):
    def setUp(self):
        self.stack = contextlib.ExitStack()
        self.addCleanup(self.stack.close)
        enter = self.stack.enter_context
        self.out = os.path.join(enter(tempfile.TemporaryDirectory()), "run.json")
        for name, value in dict(get_device_name=lambda: "NVIDIA TEST", is_available=lambda: True, Event=Event, synchronize=lambda: None,
                                empty_cache=lambda: None).items():
            enter(mock.patch.object(torch.cuda, name, value))
        enter(mock.patch.object(torch, "compile", lambda function, **_: function))
        enter(mock.patch.object(cases, "TOKENS", 256))
        enter(mock.patch.object(cases, "LEAST_BLOCK", 0.01))
        enter(mock.patch.object(cases, "MOST_BLOCK", 0.02))
        enter(mock.patch.object(cases, "FIXED", {name: 0.0 for name in cases.FIXED}))
        enter(mock.patch.object(measure.Run, "ceilings", lambda self: None))
        threads = torch.get_num_threads()
        torch.set_num_threads(1)
        self.addCleanup(torch.set_num_threads, threads)
        enter(mock.patch("cubridge.Library", Library))
        enter(OnCpu())
        small = lambda suite, v, peers_: cases.Case(suite, v, "bf16", 128, 4, 2, 16, 16, peers_)
        self.cases = [small("variants", "prefix_of_request", ("flex",)), small("base", "causal", ("cudnn", "mosaic", "eager")),
                      small("variants", "window_sinks", ("flex", "eager"))]
        first = [small("first-call", v, ("flex",)) for v in ("window_sinks", "prefix_of_request")]
        enter(mock.patch.dict(cases.SHARDS, {"test": self.cases, "first-call": first}))

    def run_shard(self, *options, seconds=60, shard="test"):
        text = io.StringIO()
        with contextlib.redirect_stdout(text), mock.patch.object(measure, "BEGIN", time.monotonic()):
            status = measure.main([shard, "--out", self.out, "--specs", SPECS, "--seconds", str(seconds), "--commit", "c0ffee", "--ahead", "0", *options])
        return status, results.load(self.out), text.getvalue()

    def test_rows(self):
        only = "prefix_of,window_sinks" if not os.path.isdir(SPECS) else ""
        status, record, text = self.run_shard("--only", only) if only else self.run_shard()
        self.assertEqual(status, 0, text)
        rows = {(r["variant"], r["impl"]): r for r in record["rows"]}
        for key in (("prefix_of_request", "cubridge"), ("prefix_of_request", "flex"), ("window_sinks", "cubridge"),
                    ("window_sinks", "flex"), ("window_sinks", "eager")):
            self.assertIn(key, rows, text)
        for row in record["rows"]:
            self.assertFalse([name for name in results.FIELDS if name not in row])
            self.assertLess(row["error"], 1e-2)
            self.assertGreaterEqual(row["launches"], 6)
            self.assertEqual("ratio" in row, row["impl"] != "cubridge")
        flex = rows["prefix_of_request", "flex"]
        self.assertAlmostEqual(flex["ratio"], flex["us"] / flex["us_beside"], places=3)
        self.assertEqual(rows["window_sinks", "cubridge"]["launches"] >= 18, True)  # three blocks of six
        if not only:
            left = {(r["variant"], r["impl"]) for r in record["left_out"]}
            self.assertEqual(left, {("causal", "cudnn"), ("causal", "mosaic")})
            self.assertTrue(all(r["why"] for r in record["left_out"]))

    def test_figures_of_a_case(self):
        from timing import Block
        told = iter([10.0, 0.5, 20.0, 50.0, 40.0])  # ours, flex, ours, eager, ours
        with mock.patch.object(measure.Run, "time", lambda *_: Block([x := next(told), x, x], {}, 1.0)):
            _, record, text = self.run_shard("--only", "window_sinks")
        rows = {r["impl"]: r for r in record["rows"]}
        self.assertEqual((rows["cubridge"]["us"], rows["cubridge"]["drift"]), (20.0, 3.0))
        self.assertEqual([(rows[i]["us_beside"], rows[i]["ratio"]) for i in ("flex", "eager")], [(15.0, round(0.5 / 15, 4)), (30.0, round(50 / 30, 4))])
        pairs = 2 * 128 * 129 // 2  # two requests, causal: the window is longer
        self.assertEqual(rows["flex"]["pairs"], pairs)
        self.assertEqual(rows["flex"]["tflops"], round(4 * 16 * 4 * pairs / 0.5 * 1e-6, 1))

    def test_a_wrong_kernel_is_named(self):
        with mock.patch.object(Library, "broken", ("window_sinks",)):
            status, record, text = self.run_shard("--only", "window_sinks,prefix_of", "--impls", "cubridge")
        self.assertEqual(status, 1)
        self.assertIn("wrong: window_sinks", text)
        self.assertNotIn("wrong: prefix_of_request", text)

    def test_resuming(self):
        options = ("--only", "window_sinks,prefix_of", "--impls", "cubridge,eager")
        self.assertEqual(self.run_shard(*options)[0], 0)
        _, before, _ = self.run_shard(*options, "--resume")
        status, after, text = self.run_shard(*options, "--resume")
        self.assertIn("2 cases are there already", text)
        self.assertEqual((status, before["rows"]), (0, after["rows"]))
        with mock.patch.object(Library, "source", "text 2"):
            _, after, text = self.run_shard(*options, "--resume")
        self.assertIn("0 cases are there already", text)
        self.assertEqual({r["source"] for r in after["rows"] if r["impl"] == "cubridge"}, {"text 2"})

    def test_first_calls(self):
        with mock.patch("first_call.SECOND", 64):
            status, record, text = self.run_shard(shard="first-call")
        self.assertEqual((status, len(record["rows"]), record["left_out"]), (0, 4, []), text)
        for row in record["rows"]:
            self.assertFalse([name for name in results.FIELDS if name not in row])
            self.assertGreater(row["second_length_ms"], 0)
        ours, flex = record["rows"][:2]
        self.assertAlmostEqual(ours["of_flex"], ours["us"] / flex["us"], places=3)

    def test_a_case_that_fails_while_timed_leaves_the_others(self):
        from timing import Block
        def time_(run, impl, prepared, seconds):
            if impl == "flex":
                raise RuntimeError("CUDA error: refused")
            return Block([10.0] * 6, {}, 1.0)
        with mock.patch.object(measure.Run, "time", time_):
            status, record, _ = self.run_shard("--only", "window_sinks")
        rows = {r["impl"]: r for r in record["rows"]}
        self.assertEqual((status, set(rows)), (0, {"cubridge", "eager"}))
        self.assertEqual((rows["eager"]["us_beside"], rows["eager"]["ratio"]), (10.0, 1.0))
        self.assertIn("refused", record["left_out"][0]["why"])

    def test_ours_alone_is_timed_twice(self):
        _, record, _ = self.run_shard("--only", "window_sinks", "--impls", "cubridge")
        self.assertGreaterEqual(record["rows"][0]["launches"], 12)
        self.assertIn("drift", record["rows"][0])

    def test_a_lost_gpu_leaves_the_rest_to_another_process(self):
        ended = {}
        def exit_(status):
            ended["status"] = status
            raise SystemExit(status)
        def breaks(run, impl, *_):
            if impl == "flex":
                torch.cuda.synchronize = lambda: (_ for _ in ()).throw(RuntimeError("CUDA error: illegal address"))
                raise RuntimeError("CUDA error: illegal address")
            return prepare(run, impl, *_)
        prepare = measure.Run.prepare
        with mock.patch.object(os, "_exit", exit_), mock.patch.object(measure.Run, "prepare", breaks), self.assertRaises(SystemExit):
            self.run_shard("--only", "prefix_of,window_sinks")
        self.assertEqual(ended["status"], measure.LOST)
        with open(self.out + ".rest") as f:
            numbers, seconds = f.read().split()
        self.assertEqual(numbers, "2")
        self.assertGreater(int(seconds), 0)
        self.assertIn("flex", next(r["why"] for r in results.load(self.out)["left_out"] if r["impl"] == "case"))
        torch.cuda.synchronize = lambda: None
        status, record, text = self.run_shard("--numbers", numbers)
        self.assertEqual({r["variant"] for r in record["rows"]}, {"window_sinks"})
        self.assertEqual(status, 1, text)  # what was lost is still said

    def test_out_of_time(self):
        with mock.patch.dict(cases.FIXED, case=1e6):
            status, record, text = self.run_shard("--only", "window_sinks,prefix_of")
        self.assertEqual((status, record["rows"]), (3, []))
        self.assertIn("2 cases are left", text)

    def test_a_kernel_that_is_not_made_fails_the_run(self):
        def refuse(*_):
            raise RuntimeError("no kernel: refused")
        with mock.patch.object(Library, "kernel", refuse):
            status, record, _ = self.run_shard("--only", "window_sinks", "--impls", "cubridge,flex")
        self.assertEqual(status, 1)
        self.assertEqual([r["impl"] for r in record["rows"]], ["flex"])
        self.assertIn("refused", record["left_out"][0]["why"])


if __name__ == "__main__":
    unittest.main()
