"""Merges records, says which rows are stale, and writes the tables and plots of docs/performance.md.

report.py merge RESULTS FILE... | stale RESULTS [--specs DIR] [--library PATH] | report RESULTS DOCS
SPDX-License-Identifier: Apache-2.0"""
import argparse, math, os, re, statistics, sys, tempfile
import cases, plots, results
from results import NAMES
from variants import VARIANTS

SINGLE = ("cudnn", "fa2", "mosaic", "flex")    # peers of the base; fa3 and flashinfer are reported apart
BEGIN, END = "<!-- from latest.json: begin -->", "<!-- from latest.json: end -->"


def slug(gpu):
    return re.sub("[^a-z0-9]+", "-", gpu.removeprefix("NVIDIA ").lower())


def geomean(values):
    values = list(values)
    return math.exp(statistics.fmean(math.log(x) for x in values)) if values else None


def by_case(rows, suite=None):
    """case -> implementation -> row; a wrong row counts for nobody."""
    out = {}
    for row in rows:
        if (suite is None or row["suite"] == suite) and not results.wrong(row):
            out.setdefault(results.case_key(row), {})[row["impl"]] = row
    return out


def ratios(cases_, peer):
    """Peer's time over ours, ours from the two blocks around the peer's."""
    return {key: row[peer]["ratio"] for key, row in cases_.items() if "ratio" in row.get(peer, {})}


def over(cases_, variant, other, suite=("variants",)):
    """TFLOP/s of one of our kernels over another's at the same shape and in the same type, as {case: ratio}."""
    ours = {key: row["cubridge"]["tflops"] for key, row in cases_.items() if "cubridge" in row and key[0] in suite}
    pairs = {key: ours.get(key[:1] + (other,) + key[2:]) for key in ours if key[1] == variant}
    return {key: ours[key] / x for key, x in pairs.items() if x}


def figures(rows):
    """What the issues of these kernels ask: (what, figure, bound, how many cases, of how many in the shards)."""
    all_, out = by_case(rows), []
    shards = {c.key(): c for shard in cases.SHARDS.values() for c in shard}

    def put(what, values, bound, asked, reduce=min):
        """Of the cases that `asked` picks, those that there are values for."""
        wanted = [key for key, c in shards.items() if asked(c)]
        got = [values[key] for key in wanted if key in values]
        out.append((what, reduce(got) if got else None, bound, len(got), len(wanted)))

    def of(suite, *names):
        return lambda c: c.suite == suite and (not names or c.variant in names)

    # A peer that could not run a few cases is still the best one, where it is.
    per_peer = {peer: ratios(by_case(rows, "base"), peer) for peer in SINGLE}
    many = 0.75 * max(map(len, per_peer.values()))
    best = min([(geomean(r.values()), peer) for peer, r in per_peer.items() if r and len(r) >= many], default=(None, None))[1]
    put(f"base, against the best single peer ({NAMES.get(best, 'none')}), geometric mean", per_peer.get(best, {}), 1.03, of("base"), geomean)
    fastest = {key: min(r[key] for r in per_peer.values() if key in r) for key in set().union(*per_peer.values())}
    put("base, against the fastest peer of each case, geometric mean", fastest, 1.00, of("base"), geomean)
    put("base, the worst case of these", fastest, 0.93, of("base"))
    put("against the prototype, the worst case", ratios(all_, "prototype"), 0.98, lambda c: "prototype" in c.peers)
    flex = ratios(all_, "flex")
    variants = lambda c: c.suite == "variants" and c.variant != "causal" and "flex" in c.peers
    put("variants, against FlexAttention, geometric mean (goal 1.8)", flex, 1.55, variants, geomean)
    put("variants, the worst case of these", flex, 1.25, variants)
    tflops = {key: row["cubridge"]["tflops"] for key, row in all_.items() if "cubridge" in row}
    for S, bound in ((4096, 577), (8192, 552)):
        put(f"prefix-LM at {S}, TFLOP/s, the worst case", tflops, bound,
            lambda c: of("variants", "prefix_lm")(c) and (c.S, c.Hq, c.Hk) == (S, 32, 32))
    put("sigmoid over our causal kernel, the worst case", over(all_, "sigmoid", "causal"), 0.9, of("variants", "sigmoid"))
    put("ReLU over our causal kernel, the worst case", over(all_, "relu", "causal"), 1.0, of("variants", "relu"))
    put("comb over our prefix-LM kernel, the worst case (goal 0.9)", over(all_, "comb", "prefix_lm"), 0.75, of("variants", "comb"))
    put("dilated causal, against FlexAttention, the worst case", flex, 3, of("structure", "dilated_causal"))
    put("window, sinks and every 8th key, likewise", flex, 4, of("structure", "window_sinks_strided"))
    for D in (64, 256):
        put(f"head dim {D}, against cuDNN, the worst case", ratios(all_, "cudnn"), 1.0, lambda c: c.suite == "dims" and c.D == c.Dv == D)
    put("portable expert, against FlashAttention-2, the worst case", ratios(all_, "fa2"), 0.95, of("portable", *cases.BASE))
    for variant, bound in zip(cases.PORTABLE, (0.85, 0.85, 0.85, 0.80)):
        put(f"portable expert, {variant} over its causal, the worst case", over(all_, variant, "causal", ("portable",)), bound,
            of("portable", variant))
    first = {key: 1 / row["cubridge"]["of_flex"] for key, row in all_.items() if "of_flex" in row.get("cubridge", {})}
    put("first call, FlexAttention's over ours, the worst case", first, round(1 / 0.6, 2), of("first-call"))
    return out


def cell(row):
    if row is None:
        return "-"
    return f"{row['tflops']:.0f}" + ("" if row["spread"] <= 0.05 else f" ±{row['spread'] * 50:.0f}%") + (" wrong" if results.wrong(row) else "")


def table(rows, suite, impls):
    """TFLOP/s by case, and by how much we are faster than the fastest peer of the case."""
    grouped = {}
    for row in rows:
        if row["suite"] == suite:
            grouped.setdefault(results.case_key(row), {})[row["impl"]] = row
    impls = [i for i in impls if any(i in g for g in grouped.values())]
    if not grouped:
        return []
    heads = " | ".join(NAMES[i] for i in impls)
    lines = ["", f"### {suite}", "", f"| variant | type | S | heads | D | {heads} | µs | faster than the fastest by | error |",
             "| --- | --- | --- | --- | --- |" + " --- |" * (len(impls) + 3)]
    for key, of in sorted(grouped.items(), key=lambda item: (list(VARIANTS).index(item[0][1]), item[0][2:])):
        _, variant, dtype, S, _, Hq, Hk, D, Dv = key
        near = [of[i]["ratio"] for i in of if "ratio" in of[i] and i not in ("prototype", "eager") and not results.wrong(of[i])]
        ours = of.get("cubridge")
        cells = [variant, dtype, str(S), f"{Hq}/{Hk}", str(D) if D == Dv else f"{D}:{Dv}"] + [cell(of.get(i)) for i in impls]
        cells += [f"{ours['us']:.0f}" if ours else "-", f"{min(near):.2f}x" if near else "-",
                  f"{ours['error']:.1e}" if ours and ours["error"] is not None else "-"]
        lines.append("| " + " | ".join(cells) + " |")
    return lines


def first_call_table(rows):
    grouped = by_case([r for r in rows if r["suite"] == "first-call"])
    if not grouped:
        return []
    lines = ["", "### first call, ms", "",
             "| variant | CuBridge | FlexAttention | of these its BlockMask | ours over theirs | other length: CuBridge | FlexAttention |",
             "| --- | --- | --- | --- | --- | --- | --- |"]
    for key, of in grouped.items():
        us, flex = of.get("cubridge"), of.get("flex")
        show = lambda row, name, scale=1.0: f"{row[name] * scale:.0f}" if row and row.get(name) is not None else "-"
        lines.append(f"| {key[1]} | {show(us, 'us', 1e-3)} | {show(flex, 'us', 1e-3)} | {show(flex, 'block_mask_ms')} | "
                     f"{us['of_flex'] if us and 'of_flex' in us else '-'} | {show(us, 'second_length_ms')} | {show(flex, 'second_length_ms')} |")
    return lines


def tables(record, name):
    rows = record["rows"]
    if not rows:
        return "No rows yet."
    commits = sorted({row["commit"].split("+")[0][:7] for row in rows if row["impl"] == "cubridge"})
    lines = [f"{record['gpu']}, {record['date'][:10]}, kernels of {', '.join(commits)}; [rows](../tests/bench/results/{name}/latest.json)."]
    if record.get("ceilings"):
        c = record["ceilings"]
        lines[0] += f" In the same run: matrix product 8192^3 {c['bf16_tflops']} TFLOP/s, copy {c['tb_per_s']} TB/s."
    lines += ["", "| asked | figure | bound | | cases |", "| --- | --- | --- | --- | --- |"]
    for what, figure, bound, count, wanted in figures(rows):
        shown = "-" if figure is None else f"{figure:.0f}" if bound > 100 else f"{figure:.2f}x"
        met = "not run" if figure is None else "met" if figure >= bound else "**not met**"
        lines.append(f"| {what} | {shown} | {bound} | {met} | {count} of {wanted} |")
    for plot in plots.there(record):
        lines += ["", f"![{plot}](performance-{plot}.svg)"]
    for suite in ("base", "variants", "structure", "dims", "portable"):
        lines += table(rows, suite, ("cubridge", *SINGLE, "fa3", "flashinfer", "prototype", "eager"))
    lines += first_call_table(rows)
    left = {}
    for row in record.get("left_out", []):
        left.setdefault((NAMES.get(row["impl"], row["impl"]), row["why"].splitlines()[0][:140]), []).append(row["variant"])
    if left:
        lines += ["", "### left out", ""] + [f"- {impl}, {len(of)} cases ({', '.join(sorted(set(of)))}): {why}" for (impl, why), of in left.items()]
    return "\n".join(lines)


def write_report(root, docs):
    path = os.path.join(docs, "performance.md")
    with open(path) as f:
        before, _, rest = f.read().partition(BEGIN)
    if END not in rest:
        raise SystemExit(f"{path} has no place for the tables ({BEGIN} ... {END})")
    text = []
    for name in sorted(os.listdir(root)):
        latest = os.path.join(root, name, "latest.json")
        if os.path.exists(latest):
            record = results.load(latest)
            plots.draw(record, docs)
            text.append(tables(record, name))
    with open(path, "w") as f:
        f.write(before + BEGIN + "\n" + "\n\n".join(text or ["No rows yet."]) + "\n" + END + rest.partition(END)[2])


def merge_files(root, files):
    for file in files:
        more = results.load(file)
        latest = os.path.join(root, slug(more["gpu"]), "latest.json")
        record = results.merge(results.load(latest, more["gpu"]), more)
        results.save(latest, record)
        print(f"{latest}: {len(record['rows'])} rows, {len(more['rows'])} from {file}")


def stale(root, argv):
    """Makes the kernel of each row anew, for its GPU but without one, and compares texts."""
    from cubridge import Library
    import measure
    a = argparse.ArgumentParser(prog="run.sh stale")
    a.add_argument("--specs", default=os.path.join(measure.HERE, "../../../../shared/specs"))
    a.add_argument("--library", default=os.path.join(measure.HERE, "../../../build/gpu"))
    a.add_argument("--arch", default="sm_90a")
    args, old, known = a.parse_args(argv), 0, {}
    with tempfile.TemporaryDirectory() as store:
        library = Library(args.library, store)
        for name in sorted(os.listdir(root)):
            for row in results.load(os.path.join(root, name, "latest.json"))["rows"] if os.path.isdir(os.path.join(root, name)) else ():
                if row["impl"] != "cubridge" or row.get("from_artifact"):
                    continue
                case = cases.Case(*(row[n] for n in ("suite", "variant", "dtype", "S", "Hq", "Hk", "D", "Dv")))
                key = cases.kernel_key(case)
                if key not in known:
                    known[key] = measure.ask_kernel(library, case, args.specs, "cpu", args.arch).ready().describe()["source"]
                if known[key] != row["source"]:
                    old += 1
                    print(f"stale: {case.name()} ({row['suite']}), measured at {row['commit'][:7]}")
        library.close()
    print(f"{old} rows are stale")
    return 1 if old else 0


if __name__ == "__main__":
    verb, root, *rest = sys.argv[1:]
    sys.exit({"merge": lambda: merge_files(root, rest), "stale": lambda: stale(root, rest), "report": lambda: write_report(root, *rest)}[verb]())
