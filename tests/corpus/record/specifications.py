# Every specification, respelling and near miss of the corpus on small shapes: inputs, and what PyTorch gives, wide.
# SPDX-License-Identifier: Apache-2.0
import inspect
import json
import pathlib
import sys

import torch

import container
import neutral

CORPUS = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(CORPUS))
kept = torch.Tensor.float
import check_in_torch as check  # noqa: E402

torch.Tensor.float = kept
torch.set_default_dtype(torch.float32)

# B, Hq, Hk, Sq, Sk, D, Dv. Groups 1, 2 and 3; one query; one key; more queries than keys and the reverse.
SHAPES = [(2, 4, 2, 5, 5, 8, 4), (1, 2, 2, 3, 7, 8, 8), (1, 6, 2, 7, 4, 8, 8), (2, 2, 1, 1, 6, 8, 8), (1, 4, 2, 3, 1, 8, 8), (1, 2, 2, 9, 9, 8, 8)]
SETTINGS = 2  # of each shape and entry, where there are as many


def grid(t):
    return ((t * 64).round() / 64).float() if t.is_floating_point() else t.to(torch.int32)


def run_flex(space, function, q, k, v):
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention
    score, _, mask = function.partition("+")
    if len(inspect.signature(space[score]).parameters) == 4:
        score, mask = "", score
    block = None
    if mask:
        block = create_block_mask(space[mask], B=q.size(0), H=q.size(1), Q_LEN=q.size(2), KV_LEN=k.size(2), device="cpu")
    return flex_attention(q, k, v, score_mod=space[score] if score else None, block_mask=block, enable_gqa=True)


def run(text, function, flex, q, k, v, given):
    """The outputs in float64, and their dtypes as the text leaves them."""
    results = []
    for wide in (True, False):
        cast = lambda t: t.double() if wide and isinstance(t, torch.Tensor) and t.is_floating_point() else t
        values = {n: cast(x) for n, x in given.items()}
        if flex:
            torch.set_default_dtype(torch.float64 if wide else torch.float32)
            torch.Tensor.float = torch.Tensor.double if wide else kept
            try:
                space = {}
                exec(compile(text, "specification", "exec"), space)
                space.update({n: x for n, x in values.items() if n in space})
                results.append((run_flex(space, function, cast(q), cast(k), cast(v)),))
            finally:
                torch.Tensor.float = kept
                torch.set_default_dtype(torch.float32)
            continue
        with neutral.run(wide):
            space = {}
            exec(compile(text, "specification", "exec"), space)
            out = space[function](cast(q), cast(k), cast(v), **values)
            results.append(out if isinstance(out, tuple) else (out,))
    wide, plain = results
    return [(w, p.dtype) for w, p in zip(wide, plain)], neutral.agree(wide, plain)


def cases(original, entry, extra):
    seen, last = {}, None
    check.SHAPES, check.SEEDS = SHAPES, (1,)
    for q, k, v, ours, theirs in check.pairs(original, [entry], extra, False):
        shape = (tuple(q.shape), tuple(k.shape), tuple(v.shape))
        key = tuple(sorted((n, x) for n, x in theirs.items() if not isinstance(x, torch.Tensor)))
        taken = seen.setdefault(shape, set())
        if key in taken or len(taken) >= SETTINGS:
            continue
        taken.add(key)
        given = {n: grid(x) if isinstance(x, torch.Tensor) else x for n, x in theirs.items()}
        yield grid(q), grid(k), grid(v), given


def add(record, log, name, text, function, flex, original, entry, extra, rename):
    count = 0
    for q, k, v, given in cases(original, entry, extra):
        given = {rename.get(n, n): x for n, x in given.items()}
        space = {}
        exec(compile(text, name, "exec"), space)
        known = list(space) if flex else list(inspect.signature(space[function]).parameters)
        given = {n: x for n, x in given.items() if n in known}
        try:
            outputs, agreed = run(text, function, flex, q, k, v, given)
        except Exception as e:
            first = f"{type(e).__name__}: {e}".splitlines()[0]
            log(f"{name} ({entry['name']}), q {list(q.shape)}, k {list(k.shape)}: {first}")
            continue
        if not agreed:
            log(f"{name} ({entry['name']}), q {list(q.shape)}: float32 decides something")
        score, _, mask = function.partition("+")
        names = ("q", "k", "v") if flex else list(inspect.signature(space[function]).parameters)[:3]
        inputs = [*zip(names, (q, k, v)), *given.items()]
        record.case(f"{name} ({entry['name']})", container.SPECIFICATION, text, score, mask, 0, inputs, outputs)
        count += 1
    if not count:
        log(f"{name} ({entry['name']}): no case")
    return count


def make(record, specs, log):
    options = json.loads((CORPUS / "options.json").read_text())
    count = 0
    for name, entries in options.items():
        file, _, function = name.partition(":")
        text = (specs / file).read_text(encoding="utf-8")
        for entry in entries:
            count += add(record, log, name, text, function or "attention", bool(function), name, entry, [], {})
        folder = CORPUS / "respell" / pathlib.Path(file).stem
        for path in sorted(folder.glob("*.py")) if file.startswith("paper/") else []:
            other = path.read_text(encoding="utf-8")
            spaces = [{}, {}]
            exec(compile(text, file, "exec"), spaces[0])
            exec(compile(other, str(path), "exec"), spaces[1])
            old, new = (list(inspect.signature(s["attention"]).parameters)[3:] for s in spaces)
            for entry in entries:
                count += add(record, log, f"respell/{folder.name}/{path.name}", other, "attention", False, name, entry, [], dict(zip(old, new)))
    for near in json.loads((CORPUS / "near" / "index.json").read_text()):
        flex = ":" in near["original"]
        text = (CORPUS / "near" / near["file"]).read_text(encoding="utf-8")
        for entry in options[near["original"]]:
            count += add(record, log, "near/" + near["file"], text, near["function"], flex, near["original"], entry, near.get("args", []), {})
    return count
