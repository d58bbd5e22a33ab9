# Runs the corpus in PyTorch: each respelling must equal its original, each near miss must differ somewhere.
#   python3 tests/corpus/check_in_torch.py SPECS [NAME...]     SPECS: the folder of specifications; NAME: part of a file's path
# Float64 throughout: casts to float32 in the texts are neutralised. Prints one line a failure and `N passed, N failed`.
# SPDX-License-Identifier: Apache-2.0
import argparse
import inspect
import json
import pathlib
import re
import sys

import torch

HERE = pathlib.Path(__file__).resolve().parent
PAPER = ("prefix_lm", "global_sliding_window", "share_question", "causal_blockwise", "relative_position", "relu", "sigmoid", "comb")
# B, Hq, Hk, Sq, Sk, D, Dv. Groups 1, 2 and 3; one query; more queries than keys (rows without keys), and the reverse.
SHAPES = [(2, 4, 2, 6, 6, 8, 8), (2, 4, 4, 5, 9, 8, 6), (2, 6, 2, 9, 5, 8, 8), (1, 2, 2, 1, 7, 8, 8), (3, 4, 2, 12, 12, 8, 8)]
SEEDS = (1, 2)

torch.set_default_dtype(torch.float64)
torch.Tensor.float = torch.Tensor.double


def load(path):
    text = pathlib.Path(path).read_text(encoding="utf-8").replace("torch.float32", "torch.float64")
    space = {}
    exec(compile(text, str(path), "exec"), space)
    return space


def sizes_of(shape, domain, specification):
    b, hq, hk, sq, sk, d, dv = shape
    if "B==1" in domain:
        b = 1
    if "Hk==1" in domain:
        hk = 1
    if "Hq==Hk" in domain or "Hk==Hq" in domain:
        hk = hq
    if "Sq==Sk" in domain and sq != sk or "Sk>=Sq" in domain and sk < sq:
        return None
    return {"B": b, "Hq": hq, "Hk": hk, "Hv": hq // 2, "Sq": sq, "Sk": sk, "S": max(sq, sk), "D": d, "Dv": dv}


def size(word, sizes):
    return eval(word, {}, dict(sizes)) if isinstance(word, str) else word


def tensor(kind, shape, rule, sizes, rng):
    if rule.get("tree"):
        parents = [-1] + [int(torch.randint(-1, i, (), generator=rng)) for i in range(1, shape[0])]
        return torch.tensor(parents[:shape[0]], dtype=torch.int64)
    low = rule.get("low", 0 if kind.startswith("i") else None)
    if low is None:
        return torch.randn(shape, generator=rng)
    high = size(rule.get("high", 4), sizes)
    if kind.startswith("f"):
        return torch.rand(shape, generator=rng) * (high - low) + low
    t = torch.randint(low, high, shape, generator=rng)
    if rule.get("order") == "ascending":
        t = t.sort(-1).values
    if "first" in rule:
        t[..., 0] = size(rule["first"], sizes)
    if "last" in rule:
        t[..., -1] = size(rule["last"], sizes)
    return t


def operands(args):
    """What --arg, --set and --absent say: name -> (kind, dims), name -> number, names."""
    tensors, values, absent = {}, {}, []
    for flag, text in zip(args[::2], args[1::2]):
        if flag == "--absent":
            absent.append(text)
        elif flag == "--set":
            name, number = text.split("=")
            values[name] = float(number) if re.search(r"[.e]", number) else int(number)
        elif flag == "--arg":
            name, kind, dims = re.fullmatch(r"(\w+)=(\w+)\[(.*)\]", text).groups()
            tensors[name] = (kind, [d for d in dims.split(",") if d])
    return tensors, values, absent


def narrowed(t, given, wanted):
    """A tensor for the original from one that a near miss takes with other dims."""
    if given == wanted:
        return t
    if len(given) > len(wanted):
        trailing = given[:len(wanted)] == wanted
        while t.dim() > len(wanted):
            t = t[..., 0] if trailing else t[0]
    return t


def settings(entry, round_):
    chosen = {}
    for name, listed in entry.get("cases", {}).items():
        if isinstance(listed, list):
            chosen[name] = listed[round_ % len(listed)]
    for name, listed in entry.get("cases", {}).items():
        if isinstance(listed, str):
            chosen[name] = eval(listed, {}, dict(chosen))
    return chosen


def flex(space, function, q, k, v):
    """Attention as FlexAttention gives it, with function as score_mod or mask_mod."""
    group = q.size(1) // k.size(1)
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5
    at = [torch.arange(n).view([-1 if d == axis else 1 for d in range(4)]) for axis, n in enumerate(s.shape)]
    if len(inspect.signature(space[function]).parameters) == 5:
        s = space[function](s, *at)
    else:
        s = s.masked_fill(~space[function](*at), float("-inf"))
    return s.softmax(-1) @ v


def run(space, function, is_flex, q, k, v, given):
    if is_flex:
        saved = {name: space[name] for name in given if name in space}
        space.update({name: given[name] for name in saved})
        out = flex(space, function, q, k, v)
        space.update(saved)
    else:
        parameters = list(inspect.signature(space[function]).parameters.values())[3:]
        rest = {}
        for p in parameters:
            if p.name in given:
                rest[p.name] = given[p.name]
        out = space[function](q, k, v, **rest)
    return out if isinstance(out, tuple) else (out,)


def distance(a, b):
    """0 where equal, infinity where shapes, NaN or infinities stand in different places."""
    if len(a) != len(b):
        return float("inf")
    worst = 0.0
    for x, y in zip(a, b):
        if x.shape != y.shape or not torch.equal(x.isnan(), y.isnan()) or not torch.equal(x.isinf(), y.isinf()):
            return float("inf")
        d = torch.where(x == y, 0.0, (x - y).abs()).nan_to_num(0.0)
        worst = max(worst, float(d.max()) if d.numel() else 0.0)
    return worst


def pairs(original, entries, extra, positional):
    """Every case: (original's arguments, other's arguments). `extra` are the options that a near miss adds;
    positional: parameters after v are matched by place, not by name."""
    for entry in entries:
        domain = entry.get("domain", [])
        base, fixed, absent = operands(entry["args"])
        tensors, more, lacking = operands(extra)
        if extra and "--absent" in entry["args"] and any(name in tensors or name in more for name in absent):
            absent = [name for name in absent if name not in tensors and name not in more]
        for shape in SHAPES:
            sizes = sizes_of(shape, domain, original)
            if sizes is None:
                continue
            for round_ in range(4):
                for seed in SEEDS:
                    rng = torch.Generator().manual_seed(seed)
                    chosen = {**fixed, **settings(entry, round_), **more}
                    at = {**sizes, **{n: x for n, x in chosen.items() if isinstance(x, int)}}
                    chosen = {n: size(x, at) for n, x in chosen.items()}
                    at.update({n: x for n, x in chosen.items() if isinstance(x, int)})
                    heads = sizes["Hv"] if "Hv==Hq/2" in domain else sizes["Hk"]
                    q = torch.randn(sizes["B"], sizes["Hq"], sizes["Sq"], sizes["D"], generator=rng) * 1.5
                    k = torch.randn(sizes["B"], sizes["Hk"], sizes["Sk"], sizes["D"], generator=rng) * 1.5
                    v = torch.randn(sizes["B"], heads, sizes["Sk"], sizes["Dv"], generator=rng)
                    ours, theirs = dict(chosen), dict(chosen)
                    for name, (kind, dims) in {**base, **tensors}.items():
                        if name in ("q", "k", "v") or name in lacking:
                            continue
                        rule = entry.get("values", {}).get(name, {})
                        t = tensor(kind, [size(d, at) for d in dims], rule, at, rng)
                        theirs[name] = t
                        ours[name] = narrowed(t, dims, base[name][1] if name in base else dims)
                        if name not in base and name in entry.get("cases", {}):
                            ours[name] = int(t.flatten()[0])
                    for name in absent + lacking:
                        ours.pop(name, None), theirs.pop(name, None)
                        if not name.isupper():
                            ours[name] = theirs[name] = None
                    yield q, k, v, ours, theirs


def renamed(space, function, original, given):
    """The arguments under the names that a respelling gives its parameters."""
    old = list(inspect.signature(original).parameters)[3:]
    new = list(inspect.signature(space[function]).parameters)[3:]
    return {n: given[o] for o, n in zip(old, new) if o in given}


def respelling(path, specs, options):
    name = f"paper/{path.parent.name}.py"
    original, other = load(specs / name), load(path)
    for q, k, v, ours, theirs in pairs(name, options[name], [], True):
        expected = run(original, "attention", False, q, k, v, ours)
        found = run(other, "attention", False, q, k, v, renamed(other, "attention", original["attention"], theirs))
        if not (d := distance(expected, found)) <= 1e-9:
            where = {n: x for n, x in ours.items() if not torch.is_tensor(x)}
            return f"differs by {d} for q {list(q.shape)}, k {list(k.shape)}, {where}"
    return None


def near_miss(entry, specs, options):
    file, _, function = entry["original"].partition(":")
    is_flex = bool(function)
    original, other = load(specs / file), load(HERE / "near" / entry["file"])
    worst, cases, error = 0.0, 0, None
    for q, k, v, ours, theirs in pairs(entry["original"], options[entry["original"]], entry.get("args", []), False):
        try:
            expected = run(original, function or "attention", is_flex, q, k, v, ours)
        except Exception as e:  # a setting of the near miss that the original does not take at this size
            error = error or f"original: {type(e).__name__}: {e}"
            continue
        try:
            found = run(other, entry["function"], is_flex, q, k, v, theirs)
        except Exception as e:
            error = f"{type(e).__name__}: {e}"
            continue
        cases += 1
        worst = max(worst, distance(expected, found))
    if not cases:
        return f"no case ran ({error})"
    return None if worst > 1e-6 else f"equals its original in {cases} cases (worst {worst})" + (f", {error}" if error else "")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("specs", type=pathlib.Path)
    parser.add_argument("names", nargs="*")
    chosen = parser.parse_args()
    options = json.loads((HERE / "options.json").read_text())
    wanted = lambda path: not chosen.names or any(n in str(path) for n in chosen.names)
    checks = [(p.relative_to(HERE), respelling, p) for name in PAPER for p in sorted((HERE / "respell" / name).glob("*.py"))]
    checks += [(pathlib.Path("near") / e["file"], near_miss, e) for e in json.loads((HERE / "near" / "index.json").read_text())]
    passed = failed = 0
    for path, check, subject in checks:
        if not wanted(path):
            continue
        try:
            wrong = check(subject, chosen.specs, options)
        except Exception as e:
            wrong = f"{type(e).__name__}: {e}".splitlines()[0]
        if wrong:
            print(f"{path}: {wrong}".replace("\n", " "))
        passed, failed = passed + (not wrong), failed + bool(wrong)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
