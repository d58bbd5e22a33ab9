# Random programs: grown statement by statement, each tried in PyTorch at once, wide and plain; a statement that fails, or whose
# two runs disagree by more than float32's rounding, is dropped. Rows of the table that few programs use come first.
# SPDX-License-Identifier: Apache-2.0
import ast
import collections
import math
import random

import torch
import torch.nn.functional

import arguments
import neutral
import statements

HEADER = "import math\nimport torch\nimport torch.nn.functional as F\n\n\n"
PLACES = {1: "torch", 2: "F", 4: "method", 8: "math", 16: "builtin", 32: "property", 64: "list"}
ELEMENTS, RESULTS = 200, 9
REFUSALS = (RuntimeError, TypeError, IndexError, ValueError)
# Refusals that are not the program's meaning: how arguments are spelled, what a CPU build lacks, values that hang on data.
SPELLINGS = ("positional argument", "invalid combination", "must be Tensor", "must be tuple", "'Half'", "'BFloat16'", "ZeroDivision", "unexpected keyword", "multiple values",
             "'Byte'", "'Char'", "'Short'", "'Int'", "'Long'", "overflow", "view size is not compatible", "out of bounds", "unique", "internal assert", "INTERNAL", "Boolean value of Tensor")


class World:
    """The names of one program, with their values in both runs."""

    def __init__(self, seed):
        self.r = random.Random(seed)
        self.spaces = [{"math": math, "torch": torch, "F": torch.nn.functional} for _ in range(2)]
        self.lines, self.inputs, self.results, self.fresh = [], [], [], 0
        self.last, self.along = "a", 0

    def value(self, text):
        with neutral.run(False):
            return eval(text, self.spaces[1])

    def names(self, accept):
        return [n for n, v in self.spaces[1].items() if not n.startswith("_") and len(n) <= 3 and n not in ("F",) and accept(v)]

    def numbers(self):
        return [(n, self.spaces[1][n]) for n in self.names(lambda v: type(v) in (int, float) and abs(v) < 100)]

    def tensor(self, kinds="fib", accept=lambda t: True):
        """A name, or where none fits a tensor made on the spot."""
        def kind(t):
            return "b" if t.dtype == torch.bool else "f" if t.is_floating_point() else "i"
        names = self.names(lambda v: isinstance(v, torch.Tensor) and kind(v) in kinds and accept(v))
        if names:
            return self.r.choice(names[-6:])
        near = self.names(lambda v: isinstance(v, torch.Tensor) and accept(v))
        if near:
            n = self.r.choice(near[-6:])
            return {"f": f"({n} * 0.5)", "i": f"({n} > 0).long()", "b": f"({n} > 0)"}[self.r.choice(kinds)]
        made = {"f": "(torch.arange(6).view(2, 3) / 4 - 0.5)", "i": "torch.arange(3)", "b": "torch.tensor([True, False, True])"}
        return made[self.r.choice(kinds)]

    def name(self):
        self.fresh += 1
        return f"r{self.fresh}"

    def attempt(self, text):
        """Runs the statement in both; True if it is kept, else the exception of the plain run, or None."""
        errors, before = [], [dict(s) for s in self.spaces]
        for wide, space in zip((True, False), self.spaces):
            try:
                with neutral.run(wide):
                    exec(compile(text, "program", "exec"), space)
                errors.append(None)
            except Exception as e:
                errors.append(e)
        changed = [n for n in self.spaces[1] if n not in before[1] or self.spaces[1][n] is not before[1][n]]
        good = not any(errors) and all(self.sound(n) for n in changed if n != "__builtins__")
        if not good:
            self.spaces = before
            return errors[1] if all(errors) and not any(isinstance(e, neutral.Undefined) for e in errors) else None
        for n in changed:
            if n.startswith("r") and n[1:].isdigit():
                self.results = [m for m in self.results if m != n] + [n]
        self.lines += text.splitlines()
        return True

    def sound(self, name):
        wide, plain = (s.get(name) for s in self.spaces)
        for t in neutral.tensors(plain):
            if t.numel() > ELEMENTS or t.dim() > 6 or t.dtype not in (torch.bool, torch.int64, torch.int32, torch.int16, torch.int8, torch.uint8, *neutral.FLOATS):
                return False
        if isinstance(plain, (torch.dtype, torch.device)):
            return True
        if isinstance(plain, (torch.Tensor, int, float, bool, tuple, list)):
            if type(plain) is int and abs(plain) > 2**53:
                return False
            try:
                return neutral.agree(wide, plain)
            except (TypeError, ValueError):
                return False
        return callable(plain)


def tensor_of(r, kind, shape):
    n = math.prod(shape)
    if kind == "b":
        return torch.tensor([r.random() < 0.5 for _ in range(n)], dtype=torch.bool).view(shape)
    if kind == "i":
        return torch.tensor([r.randint(-4, 6) for _ in range(n)], dtype=r.choice([torch.int64, torch.int64, torch.int32])).view(shape)
    values = [r.randint(-24, 24) / 8 if r.random() < 0.8 else r.gauss(0, 1) for _ in range(n)]
    if r.random() < 0.12 and n:
        values[r.randrange(n)] = r.choice([math.inf, -math.inf, math.nan])
    return torch.tensor(values, dtype=torch.float32).view(shape)


def begin(seed):
    w = World(seed)
    r = w.r
    base = [r.choice([1, 2, 2, 3, 3, 4, 0]) if r.random() < 0.2 else r.choice([1, 2, 3, 4]) for _ in range(r.choice([0, 1, 2, 2, 3, 3, 4]))]
    for n in "abcd"[:r.randint(1, 4)]:
        shape = [s if r.random() < 0.8 else 1 for s in base[r.randint(0, len(base)) if r.random() < 0.4 else 0:]]
        kind = r.choice("fffib") if n != "a" else r.choice("fffffi")
        t = tensor_of(r, kind, shape)
        w.inputs.append((n, t))
        w.spaces[0][n] = t.double() if kind == "f" else t.clone()
        w.spaces[1][n] = t.clone()
    return w


class Coverage:
    def __init__(self, rows):
        self.rows = rows
        self.counts = collections.Counter()

    def pick(self, r):
        """A row with one of its places, seldom used ones first."""
        some = r.sample(self.rows, 12)
        best = min(((row, p) for row in some for p in PLACES if row["places"] & p), key=lambda c: (self.counts[c[0]["name"], c[1]], r.random()))
        return best

    def wanted(self, row, place, parameter):
        return self.counts[row["name"], place, parameter]


def parameters(row):
    out, keyword_only = [], False
    for p in filter(None, row["parameters"].split(", ")):
        if p == "*":
            keyword_only = True
        else:
            out.append((p.split("=")[0].lstrip("*"), "=" in p, keyword_only, p.startswith("*")))
    return out


def call(w, coverage):
    """One call of a row, as an expression; also what it covers."""
    r = w.r
    row, place = coverage.pick(r)
    name, listed = row["name"], parameters(row)
    covers = [(name, place)]
    if place in (8, 16, 64) or name in statements.WHOLE_CALLS:
        text = statements.python_call(w, name, place)
        return text, covers + [(name, place, p) for p, *_ in listed if text and f"{p}=" in text]
    if name == "where" and place == 1:
        x = w.tensor("fffib")
        condition, other = arguments.broadcastable(w, w.value(x), "b"), arguments.other(w, w.value(x), name)
        return f"torch.where({condition}, input={x}, other={other})", covers + [(name, place, "input"), (name, place, "other")]
    positional, keywords, x, rest = [], [], torch.tensor(0.5), listed
    if listed and listed[0][0] in ("input", "tensors", "query"):
        if listed[0][0] == "tensors":
            text, x = w.tensor("fffib"), None
            x = w.value(text)
            same = w.names(lambda v: isinstance(v, torch.Tensor) and v.dim() == x.dim() and v.dtype == x.dtype)
            items = [text] + [r.choice(same + [text]) for _ in range(r.randint(0, 2))]
            positional, rest = ["[" + ", ".join(items) + "]"], listed[1:]
        elif name == "scaled_dot_product_attention":
            return statements.sdpa(w), covers + [(name, place, p) for p, *_ in listed]
        else:
            text, x = arguments.subject(w, name)
            positional, rest = [text], listed[1:]
        w.last = text
    w.along = arguments.dim(w, x)
    dropped = False
    for parameter, optional, keyword_only, tail in rest:
        count = coverage.wanted(row, place, parameter)
        if optional and r.random() > (0.85 if count < 12 else 0.4):
            dropped = True
            continue
        if tail and name in ("to", "type") and r.random() < 0.4:
            continue
        if tail and name in ("to", "type"):
            positional.append(r.choice(arguments.DTYPES))
            break
        text = str(w.along) if parameter == "dim" and name in ("gather", "scatter", "scatter_", "take_along_dim", "select", "index_select") else arguments.argument(w, name, parameter, x)
        if text is None:
            dropped = True
            continue
        if tail and parameter != "size":
            positional.append(text)
        elif keyword_only or dropped or (place == 2 and parameter == "dtype") or (optional and (count < 12 or r.random() < 0.6)) or (not optional and not tail and r.random() < 0.15):
            keywords.append(f"{parameter}={text}")
            dropped = True
            covers.append((name, place, parameter))
        else:
            positional.append(text)
    arguments_text = ", ".join(positional + keywords)
    if place == 4:
        receiver = positional[0]
        if name.endswith("_"):
            receiver += ".clone()"
        return f"{receiver}.{name}({', '.join(positional[1:] + keywords)})", covers
    if place == 32:
        return f"{positional[0]}.{name}", covers
    text = f"{PLACES[place]}.{name}({arguments_text})"
    return (f"torch.zeros_like({text})" if name.startswith("empty") else text), covers


def grow(seed, coverage):
    """One program: (world, refused statements)."""
    w, refused = begin(seed), []
    wanted = w.r.randint(3, 11)
    for _ in range(60):
        if len(w.results) >= wanted:
            break
        covers = []
        try:
            if w.r.random() < 0.62:
                text, covers = call(w, coverage)
                text = text and f"{w.name()} = {text}"
            else:
                text = statements.statement(w)
        except (IndexError, ValueError, KeyError, RuntimeError):  # nothing fits
            continue
        if text is None:
            continue
        outcome = w.attempt(text)
        if outcome is True:
            coverage.counts.update(covers)
        elif isinstance(outcome, REFUSALS) and not any(f in str(outcome) for f in SPELLINGS):
            refused.append((covers[0][0] if covers else "statement", text, outcome))
    return w, refused


def text_of(w, statement=None, results=None):
    body = w.lines + ([] if statement is None else statement.splitlines())
    names = w.results[-RESULTS:] if results is None else results
    body.append(f"return {', '.join(names)}," if names else "return a,")
    return HEADER + f"def program({', '.join(n for n, _ in w.inputs)}):\n" + "".join(f"    {line}\n" for line in body)


def outputs(text, inputs, wide):
    space = {}
    given = [(t.double() if wide and t.is_floating_point() else t.clone()) for _, t in inputs]
    with neutral.run(wide):
        exec(compile(text, "program", "exec"), space)
        return space["program"](*given)


def recordable(v):
    if isinstance(v, torch.Tensor) or type(v) in (bool, float):
        return True
    return type(v) is int


def flat(x):
    """Values and where they nest no further: sequences become their items."""
    for v in x:
        if isinstance(v, (tuple, list)) and not isinstance(v, torch.Tensor):
            yield from flat(v)
        elif recordable(v):
            yield v
        elif v is not None and not isinstance(v, (torch.dtype, torch.device, str)):
            raise ValueError(f"a result of type {type(v)}")


def make(record, rows, seed, count, refusals, log):
    coverage, kept, kinds = Coverage(rows), 0, collections.Counter()
    number = 0
    while kept < count:
        number += 1
        w, refused = grow(seed * 1000003 + number, coverage)
        if len(w.results) < 2:
            continue
        text = text_of(w)
        try:
            wide, plain = outputs(text, w.inputs, True), outputs(text, w.inputs, False)
            if not neutral.agree(wide, plain):
                continue
            pairs = list(zip(flat(wide), flat(plain)))
        except Exception as e:
            log(f"program {number} dropped: {type(e).__name__}: {e}")
            continue
        results = [(a, b.dtype if isinstance(b, torch.Tensor) else None) for a, b in pairs]
        record.case(f"program {number}", 0, text, "program", "", w.r.randint(0, 1), w.inputs, results)
        kept += 1
        for row, statement, error in refused[:1]:
            if kinds[row] < 3 and sum(kinds.values()) < refusals:
                kinds[row] += 1
                target = [n for n in statement.replace("\n", " ").split(" ")[:1] if n.startswith("r")]
                record.case(f"refused {number}", 1, text_of(w, statement, target), "program", "", 0, w.inputs, f"{type(error).__name__}: {error}".splitlines()[0][:200])
    return coverage, kept, sum(kinds.values()), number
