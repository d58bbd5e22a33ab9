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
    """What the issue of these kernels asks: (what, figure, bound, how many cases)."""
    all_, base, out = by_case(rows), by_case(rows, "base"), []

    def put(what, values, bound, reduce=min):
        values = list(values)
        out.append((what, reduce(values) if values else None, bound, len(values)))

    per_peer = {peer: ratios(base, peer) for peer in SINGLE}
    best = [(geomean(r.values()), peer) for peer, r in per_peer.items() if r and len(r) == max(map(len, per_peer.values()))]
    best = min(best)[1] if best else None
    put(f"base, against the best single peer ({NAMES.get(best, 'none')}), geometric mean", per_peer.get(best, {}).values(), 1.03, geomean)
    fastest = [min(r[key] for r in per_peer.values() if key in r) for key in set().union(*per_peer.values())]
    put("base, against the fastest peer of each case, geometric mean", fastest, 1.00, geomean)
    put("base, the worst case of these", fastest, 0.93)
    put("against the prototype, the worst case", ratios(all_, "prototype").values(), 0.98)
    variants = ratios(by_case(rows, "variants"), "flex")
    variants = {key: x for key, x in variants.items() if key[1] != "causal"}
    put("variants, against FlexAttention, geometric mean", variants.values(), 1.55, geomean)
    put("variants, the worst case of these", variants.values(), 1.25)
    for S, bound in ((4096, 577), (8192, 552)):
        prefix = [row["cubridge"]["tflops"] for key, row in all_.items() if key[:2] == ("variants", "prefix_lm") and key[3] == S
                  and key[5:7] == (32, 32) and "cubridge" in row]
        put(f"prefix-LM at {S}, TFLOP/s, the worst case", prefix, bound)
    put("sigmoid over our causal kernel, the worst case", over(all_, "sigmoid", "causal").values(), 0.9)
    put("ReLU over our causal kernel, the worst case", over(all_, "relu", "causal").values(), 1.0)
    put("comb over our prefix-LM kernel, the worst case", over(all_, "comb", "prefix_lm").values(), 0.75)
    structure = ratios(by_case(rows, "structure"), "flex")
    put("dilated causal, against FlexAttention, the worst case", (x for k, x in structure.items() if k[1] == "dilated_causal"), 3)
    put("window, sinks and every 8th key, likewise", (x for k, x in structure.items() if k[1] == "window_sinks_strided"), 4)
    dims = ratios(by_case(rows, "dims"), "cudnn")
    put("head dims 64 and 256, against cuDNN, the worst case", (x for key, x in dims.items() if key[7] in (64, 256)), 1.0)
    portable = ratios(by_case(rows, "portable"), "fa2")
    put("portable expert, against FlashAttention-2, the worst case", portable.values(), 0.95)
    first = [1 / row["cubridge"]["of_flex"] for row in by_case(rows, "first-call").values() if "of_flex" in row.get("cubridge", {})]
    put("first call, FlexAttention's over ours, the worst case", first, round(1 / 0.6, 2))
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
    for what, figure, bound, count in figures(rows):
        if figure is not None:
            shown = f"{figure:.0f}" if bound > 100 else f"{figure:.2f}x"
            lines.append(f"| {what} | {shown} | {bound} | {'met' if figure >= bound else '**not met**'} | {count} |")
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
