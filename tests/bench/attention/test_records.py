"""Plans, records, tables: no PyTorch needed. SPDX-License-Identifier: Apache-2.0"""
import os, sys, tempfile, unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import cases, plots, report, results


def row(case, impl, us, ratio=None, source="a", **more):
    out = dict(commit="c0ffee", source=source, **case.fields(), impl=impl, us=us, tflops=1e6 / us, spread=0.01, error=1e-4, **more)
    if case.suite == "first-call":
        out.update(tflops=None, error=None, second_length_ms=1.0)
    return dict(out, ratio=ratio) if ratio else out


def record(*rows, date="2026-12-01T00:00:00+00:00", gpu="NVIDIA H200", **more):
    return dict(date=date, gpu=gpu, rows=list(rows), left_out=[], ceilings={}, **more)


FULL, CAUSAL = (cases.case("base", v, "bf16", 4096) for v in ("full", "causal"))


class Plans(unittest.TestCase):
    def test_every_shard_fits_its_time(self):
        for name, shard in cases.SHARDS.items():
            impls = [(c, ("cubridge",) + c.peers) for c in shard]
            lines, enough = cases.plan(name, impls, cases.SHARD_SECONDS)
            self.assertTrue(enough, lines[0])
            self.assertEqual(len(lines), len(shard) + 1)
            self.assertEqual(len({c.key() for c in shard}), len(shard), name)

    def test_a_plan_that_does_not_fit_says_so(self):
        impls = [(c, ("cubridge",) + c.peers) for c in cases.SHARDS["base-gqa"]]
        lines, enough = cases.plan("base-gqa", impls, 120)
        self.assertFalse(enough)
        self.assertIn("--resume", lines[0])

    def test_blocks_take_what_is_left(self):
        impls = [(c, ("cubridge",) + c.peers) for c in cases.SHARDS["base-gqa"]]
        fixed = sum(cases.fixed_seconds(*x) for x in impls)
        blocks = sum(cases.blocks_of(i) for _, i in impls)
        room = 0.65 * blocks  # between the least block and the most
        seconds = cases.block_seconds(fixed + room, impls)
        self.assertAlmostEqual((seconds + cases.REST) * blocks, 0.92 * room)
        self.assertEqual(cases.block_seconds(fixed, impls), cases.LEAST_BLOCK)

    def test_what_the_issue_names_is_there(self):
        keys = {c.key() for shard in cases.SHARDS.values() for c in shard}
        for variant in cases.PAPER + cases.SERVING:
            for dtype, S, heads in [("fp16", S, (32, 32)) for S in (1024, 4096, 16384)] + [("fp16", 4096, (64, 8)),
                                    ("fp16", 4096, (128, 8)), ("bf16", 4096, (32, 32))]:
                self.assertIn(cases.case("variants", variant, dtype, S, *heads).key(), keys)
        for dtype in ("bf16", "fp16"):
            for S in cases.LENGTHS:
                for heads in ((32, 32), (64, 8), (128, 8)):
                    self.assertIn(cases.case("base", "full", dtype, S, *heads).key(), keys)


class Merging(unittest.TestCase):
    def test_a_new_run_replaces_whole_cases(self):
        old = record(row(FULL, "cubridge", 10), row(FULL, "cudnn", 12), row(CAUSAL, "cubridge", 5))
        new = record(row(FULL, "cubridge", 9, source="b"), date="2026-12-02T00:00:00+00:00")
        got = results.merge(old, new)
        self.assertEqual([(r["variant"], r["impl"], r["us"]) for r in got["rows"]], [("causal", "cubridge", 5), ("full", "cubridge", 9)])
        self.assertEqual(got["date"], new["date"])
        self.assertEqual(len(old["rows"]), 3)

    def test_what_was_left_out_goes_with_its_case(self):
        old = record(row(FULL, "cubridge", 10))
        old["left_out"] = [dict(FULL.fields(), impl="cudnn", why="x"), dict(CAUSAL.fields(), impl="case", why="y")]
        got = results.merge(old, record(row(FULL, "cubridge", 9)))
        self.assertEqual([r["impl"] for r in got["left_out"]], ["case"])

    def test_another_gpu_or_a_short_row_is_refused(self):
        with self.assertRaises(ValueError):
            results.merge(record(row(FULL, "cubridge", 1)), record(row(FULL, "cubridge", 1), gpu="NVIDIA A100"))
        bad = row(FULL, "cubridge", 1)
        del bad["source"]
        with self.assertRaises(ValueError):
            results.merge(record(), record(bad))

    def test_complete(self):
        got = record(row(FULL, "cubridge", 10, source="s"), row(FULL, "cudnn", 12))
        self.assertTrue(results.complete(got, FULL, ("cubridge", "cudnn"), "s"))
        self.assertFalse(results.complete(got, FULL, ("cubridge", "cudnn"), "another text"))
        self.assertFalse(results.complete(got, FULL, ("cubridge", "cudnn", "fa2"), "s"))
        self.assertFalse(results.complete(got, CAUSAL, ("cubridge",)))
        got["left_out"] = [dict(FULL.fields(), impl="fa2", why="refused")]
        self.assertTrue(results.complete(got, FULL, ("cubridge", "cudnn", "fa2"), "s"))

    def test_a_record_is_read_back(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "h200", "latest.json")
            want = record(row(FULL, "cubridge", 10), row(FULL, "cudnn", 12))
            results.save(path, want)
            self.assertEqual(results.load(path), want)
            results.save(path, record())
            self.assertEqual(results.load(path), record())


class Figures(unittest.TestCase):
    def figure(self, rows, start):
        return next(f for f in report.figures(rows) if f[0].startswith(start))

    def test_the_fastest_and_the_best_single_peer(self):
        rows = [row(FULL, "cubridge", 10), row(FULL, "cudnn", 11, 1.1), row(FULL, "fa2", 20, 2.0), row(FULL, "mosaic", 9, 0.9),
                row(CAUSAL, "cubridge", 10), row(CAUSAL, "cudnn", 12, 1.2), row(CAUSAL, "fa2", 21, 2.1), row(CAUSAL, "mosaic", 16, 1.6)]
        what, best, *_ = self.figure(rows, "base, against the best single")
        self.assertIn("cuDNN", what)
        self.assertAlmostEqual(best, (1.1 * 1.2) ** 0.5)
        self.assertAlmostEqual(self.figure(rows, "base, against the fastest")[1], (0.9 * 1.2) ** 0.5)
        self.assertEqual(self.figure(rows, "base, the worst")[1], 0.9)

    def test_a_wrong_row_counts_for_nobody(self):
        rows = [row(FULL, "cubridge", 10), row(FULL, "cudnn", 11, 1.1), dict(row(FULL, "mosaic", 5, 0.5), error=0.5)]
        self.assertEqual(self.figure(rows, "base, the worst")[1], 1.1)
        rows[1]["error"] = float("nan")
        self.assertIsNone(self.figure(rows, "base, the worst")[1])

    def test_our_own_kernels_against_each_other(self):
        relu, causal = (cases.case("variants", v, "fp16", 4096) for v in ("relu", "causal"))
        rows = [row(relu, "cubridge", 10), row(causal, "cubridge", 8)]
        self.assertAlmostEqual(self.figure(rows, "ReLU")[1], 0.8)

    def test_every_figure_that_is_asked(self):
        """Each figure from one or two cases of known time; the bounds are the issues'."""
        def pair(suite, variant, peer, ratio, S=4096, **more):
            c = cases.case(suite, variant, more.pop("dtype", "fp16"), S, **more)
            return [row(c, "cubridge", 10), row(c, peer, 10 * ratio, ratio)]
        def own(suite, variant, tflops, S=4096):
            return [dict(row(cases.case(suite, variant, "fp16", S), "cubridge", 1), tflops=tflops)]
        flex = pair("variants", "alibi", "flex", 1.6) + pair("variants", "softcap", "flex", 2.5)
        causal, portable = own("variants", "causal", 500), own("portable", "causal", 300)
        first = [dict(row(cases.case("first-call", "alibi", "bf16", 4096), "cubridge", 1), of_flex=0.5)]
        expected = {
            "against the prototype": (pair("base", "full", "prototype", 0.97, dtype="bf16"), 0.97, 0.98),
            "variants, against FlexAttention, geometric mean": (flex, 2.0, 1.55),
            "variants, the worst": (flex, 1.6, 1.25),
            "prefix-LM at 4096": (own("variants", "prefix_lm", 580), 580, 577),
            "prefix-LM at 8192": (own("variants", "prefix_lm", 560, 8192), 560, 552),
            "sigmoid": (causal + own("variants", "sigmoid", 450), 0.9, 0.9),
            "ReLU": (causal + own("variants", "relu", 550), 1.1, 1.0),
            "comb": (own("variants", "prefix_lm", 500) + own("variants", "comb", 300), 0.6, 0.75),
            "dilated": (pair("structure", "dilated_causal", "flex", 5), 5, 3),
            "window, sinks": (pair("structure", "window_sinks_strided", "flex", 4), 4, 4),
            "head dim 64": (pair("dims", "full", "cudnn", 1.1, D=64, Dv=64) + pair("dims", "full", "cudnn", 0.5, D=192), 1.1, 1.0),
            "head dim 256": (pair("dims", "full", "cudnn", 1.2, D=256, Dv=256, Hq=16, Hk=16), 1.2, 1.0),
            "portable expert, against": (pair("portable", "full", "fa2", 0.9), 0.9, 0.95),
            "portable expert, prefix_lm": (portable + own("portable", "prefix_lm", 270), 0.9, 0.85),
            "portable expert, alibi": (portable + own("portable", "alibi", 240), 0.8, 0.85),
            "portable expert, document": (portable + own("portable", "document", 270), 0.9, 0.85),
            "portable expert, window_1024": (portable + own("portable", "window_1024", 240), 0.8, 0.80),
            "first call": (first, 2.0, 1.67)}
        every = report.figures([])
        self.assertEqual(len(every), len(expected) + 3)  # the base's have a test of their own
        self.assertTrue(all(figure is None and count == 0 and wanted > 0 for _, figure, _, count, wanted in every))
        for start, (rows, figure, bound) in expected.items():
            with self.subTest(start):
                _, got, asked, count, wanted = self.figure(rows, start)
                self.assertAlmostEqual(got, figure)
                self.assertEqual(asked, bound)
                self.assertGreaterEqual(wanted, count)
        self.assertEqual([f[2] for f in every[:3]], [1.03, 1.00, 0.93])
        self.assertEqual({f[0]: f[4] for f in every}["base, the worst case of these"], 60)

    def test_a_peer_that_failed_once_is_still_the_best_single_one(self):
        rows = []
        for n, S in enumerate(cases.LENGTHS):
            c = cases.case("base", "full", "bf16", S)
            rows += [row(c, "cubridge", 10), row(c, "cudnn", 12, 1.2)] + ([row(c, "mosaic", 9, 0.9)] if n else [])
        what, best, _, count, wanted = self.figure(rows, "base, against the best single")
        self.assertIn("Mosaic", what)
        self.assertAlmostEqual(best, 0.9)
        self.assertEqual((count, wanted), (4, 60))

    def test_what_is_missing_is_said(self):
        text = report.tables(record(row(FULL, "cubridge", 10), row(FULL, "cudnn", 11, 1.1)), "h200")
        self.assertIn("| base, the worst case of these | 1.10x | 0.93 | met | 1 of 60 |", text)
        self.assertIn("| prefix-LM at 8192, TFLOP/s, the worst case | - | 552 | not run | 0 of 2 |", text)
        self.assertIn("| against the prototype, the worst case | - | 0.98 | not run | 0 of", text)

    def test_tables_of_every_suite(self):
        rows = []
        for shard in cases.SHARDS.values():
            for n, c in enumerate(shard):
                rows += [row(c, "cubridge", 100 + n)] + [row(c, p, 150 + n, 1.5) for p in c.peers]
        next(r for r in rows if r["suite"] == "first-call")["of_flex"] = 0.4
        got = record(*rows)
        got["ceilings"] = dict(bf16_tflops=790.0, tb_per_s=4.3)
        text = report.tables(got, "h200")
        for suite in ("base", "variants", "structure", "dims", "first call"):
            self.assertIn(f"### {suite}", text)
        self.assertIn("| first call, FlexAttention's over ours, the worst case | 2.50x | 1.67 | met | 1 of 8 |", text)
        self.assertNotIn("not run", text)
        self.assertIn("met", text)
        self.assertEqual(plots.there(got), ["variants", "lengths", "roofline"])
        header = next(line for line in text.splitlines() if line.startswith("| variant | type"))
        first = next(line for line in text.splitlines() if line.startswith("| full | bf16"))
        self.assertEqual(header.count("|"), first.count("|"))
        self.assertEqual(report.tables(record(), "h200"), "No rows yet.")

    def test_the_report_keeps_what_is_around_it(self):
        with tempfile.TemporaryDirectory() as folder:
            page = os.path.join(folder, "performance.md")
            with open(page, "w") as f:
                f.write(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
            results.save(os.path.join(folder, "results", "h200", "latest.json"), record())
            report.write_report(os.path.join(folder, "results"), folder)
            with open(page) as f:
                self.assertEqual(f.read(), f"before\n{report.BEGIN}\nNo rows yet.\n{report.END}\nafter\n")

    def test_traffic(self):
        r = row(cases.case("base", "full", "bf16", 1024, 64, 8), "cubridge", 1)
        self.assertEqual(plots.bytes_of(r), 2 * 16384 * 128 * (64 + 8 + 8 + 64))


if __name__ == "__main__":
    unittest.main()
