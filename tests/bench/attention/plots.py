"""Plots of a record: bars by variant, lines over length, a roofline. SPDX-License-Identifier: Apache-2.0"""
import os
import results
from results import NAMES
from variants import VARIANTS

COLOURS = dict(cubridge="#1b6ca8", flex="#e08e45", cudnn="#76b041", fa2="#9a6fb0", mosaic="#c0504d", prototype="#8c8c8c")


def good(record, **wanted):
    return [r for r in record["rows"] if r["tflops"] is not None and not results.wrong(r) and all(r[n] == x for n, x in wanted.items())]


def bars_of(record):
    """(S, heads, type) with the most variants: rows of ours and FlexAttention's."""
    groups = {}
    for r in good(record):
        if r["suite"] in ("variants", "structure") and r["impl"] in ("cubridge", "flex"):
            groups.setdefault((r["S"], r["Hq"], r["Hk"], r["dtype"]), []).append(r)
    return max(groups.items(), key=lambda item: (len(item[1]), item[0][0] == 4096, item[0][3] == "fp16"), default=(None, []))


def lines_of(record):
    return {(v, d): rows for v in ("full", "causal") for d in ("bf16", "fp16")
            if (rows := good(record, suite="base", variant=v, dtype=d, Hq=32, Hk=32))}


def there(record):
    out = [name for name, rows in (("variants", bars_of(record)[1]), ("lengths", lines_of(record))) if rows]
    return out + (["roofline"] if record.get("ceilings") and good(record, impl="cubridge") else [])


def bytes_of(r):
    """Least traffic with device memory: q, k, v read once, o written once."""
    return 2 * r["B"] * r["S"] * (r["Hq"] * (r["D"] + r.get("Dv", r["D"])) + r["Hk"] * (r["D"] + r.get("Dv", r["D"])))


def axes(plt, width, height, columns=1):
    figure, ax = plt.subplots(1, columns, figsize=(width, height), squeeze=False)
    for one in ax[0]:
        one.spines[["top", "right"]].set_visible(False)
        one.grid(True, axis="y", color="#e0e0e0", linewidth=0.6)
        one.set_axisbelow(True)
    return figure, ax[0]


def bars(plt, record):
    (S, Hq, Hk, dtype), rows = bars_of(record)
    names = [v for v in VARIANTS if any(r["variant"] == v for r in rows)]
    figure, (ax,) = axes(plt, 9, 3.6)
    for n, impl in enumerate(("cubridge", "flex")):
        of = {r["variant"]: r for r in rows if r["impl"] == impl}
        at = [names.index(v) + (n - 0.5) * 0.38 for v in names if v in of]
        ax.bar(at, [of[v]["tflops"] for v in names if v in of], 0.36, color=COLOURS[impl], label=NAMES[impl])
    ax.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    ax.set_ylabel("TFLOP/s on kept pairs")
    ax.set_title(f"{record['gpu']}, {dtype}, S = {S}, {Hq}/{Hk} heads, D = 128", fontsize=9, loc="left")
    ax.legend(frameon=False, fontsize=8, ncols=2, loc="lower right", bbox_to_anchor=(1, 1))
    return figure


def lines(plt, record):
    panels = lines_of(record)
    figure, ax = axes(plt, 3.1 * len(panels) + 1, 3.2, len(panels))
    for one, ((variant, dtype), rows) in zip(ax, panels.items()):
        for impl in (i for i in COLOURS if any(r["impl"] == i for r in rows)):
            points = sorted((r["S"], r["tflops"]) for r in rows if r["impl"] == impl)
            one.plot(*zip(*points), marker="o", markersize=3, linewidth=1.4, color=COLOURS[impl], label=NAMES[impl])
        one.set_xscale("log", base=2)
        one.set_ylim(bottom=0)
        one.set_title(f"{variant}, {dtype}", fontsize=9)
        one.set_xlabel("S (B·S = 16k)", fontsize=8)
    ax[0].set_ylabel("TFLOP/s on kept pairs")
    handles = {label: h for one in ax for h, label in zip(*one.get_legend_handles_labels())}
    figure.legend(handles.values(), handles, frameon=False, fontsize=8, ncols=len(handles), loc="upper center", bbox_to_anchor=(0.5, 1.06))
    return figure


def roofline(plt, record):
    top, bandwidth = record["ceilings"]["bf16_tflops"], record["ceilings"]["tb_per_s"]
    figure, (ax,) = axes(plt, 6, 3.6)
    rows = good(record, impl="cubridge")
    at = lambda r: r["tflops"] * r["us"] * 1e6 / bytes_of(r)
    span = [min(10.0, *map(at, rows)), max(2e4, *map(at, rows))]
    x = [span[0], top / bandwidth, span[1]]
    ax.plot(x, [min(top, bandwidth * one) for one in x], color="#444444", linewidth=1, label=f"{bandwidth} TB/s, {top:.0f} TFLOP/s (measured)")
    for suite, colour in (("base", "#1b6ca8"), ("variants", "#e08e45"), ("structure", "#c0504d"), ("dims", "#76b041")):
        points = [(at(r), r["tflops"]) for r in rows if r["suite"] == suite]
        if points:
            ax.scatter(*zip(*points), s=10, color=colour, label=suite)
    ax.set_xscale("log"), ax.set_yscale("log")
    ax.set_xlabel("FLOP on kept pairs per byte of q, k, v, o"), ax.set_ylabel("TFLOP/s")
    ax.legend(frameon=False, fontsize=7)
    return figure


def draw(record, folder):
    """performance-<plot>.svg in the folder, the same bytes for the same record."""
    wanted = there(record)
    if not wanted:
        return
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams.update({"svg.hashsalt": "cubridge", "svg.fonttype": "none", "font.size": 8})
    import matplotlib.pyplot as plt
    for name in wanted:
        figure = dict(variants=bars, lengths=lines, roofline=roofline)[name](plt, record)
        figure.tight_layout()
        figure.savefig(os.path.join(folder, f"performance-{name}.svg"), metadata={"Date": None}, bbox_inches="tight")
        plt.close(figure)
