# Statements that are no single call of a row: operators, indices, einsum, Python's own. SPDX-License-Identifier: Apache-2.0
import torch

import arguments

WHOLE_CALLS = {"einsum", "finfo", "iinfo", "sym_sqrt", "tensor", "as_tensor", "scalar_tensor", "arange", "eye", "full"}


def index_of(w, x, allow_tensors=True):
    r, parts, axes = w.r, [], list(x.shape)
    count = r.randint(0, len(axes))
    ellipsis = r.random() < 0.3
    for k, n in enumerate(axes[:count]):
        kind = r.random()
        if kind < 0.35:
            bound = lambda: r.choice(["", str(r.randint(-n - 1, n + 1))])
            step = r.choice(["", "", ":1", ":2", ":3"])
            parts.append(f"{bound()}:{bound()}{step}")
        elif kind < 0.6 and n:
            parts.append(str(r.randrange(-n, n)))
        elif kind < 0.85 and n and allow_tensors:
            parts.append(r.choice([f"torch.tensor([{r.randrange(-n, n)}, {r.randrange(n)}])", f"torch.tensor({r.randrange(n)})", f"[{r.randrange(n)}, {r.randrange(-n, n)}]",
                                   f"(torch.arange(2)[:, None] % {n})", f"torch.tensor([[{r.randrange(n)}], [{r.randrange(n)}]])"]))
        else:
            parts.append(":")
    for _ in range(r.choice([0, 0, 0, 1, 2])):
        parts.insert(r.randint(0, len(parts)), "None")
    if ellipsis:
        parts.insert(r.choice([0, len(parts)]), "...")
    return ", ".join(parts) or "..."


def operators(w):
    r, n = w.r, w.name()
    x = w.tensor("fffib")
    v = w.value(x)
    sign = r.choice(["+", "-", "*", "/", "//", "%", "**", "&", "|", "^", "<", "<=", ">", ">=", "==", "!=", "@"])
    if sign in "&|^":
        y = arguments.broadcastable(w, v, "b" if v.dtype == torch.bool else "ib")
    elif sign == "**":
        y = r.choice(["2", "0.5", "3", "-1", "0", "1", arguments.broadcastable(w, v, "i")])
    elif sign == "@":
        if v.dtype == torch.bool:
            return None
        y = r.choice([f"{x}.mT", f"torch.ones({v.shape[-1] if v.dim() else 1}, 2, dtype={x}.dtype)", w.tensor("f")])
    else:
        y = arguments.broadcastable(w, v) if r.random() < 0.6 else arguments.number(w)
    if r.random() < 0.25:
        x, y = y, x
    return f"{n} = " + r.choice([f"{x} {sign} {y}", f"{x} {sign} {y}", f"-({x} {sign} {y})" if sign not in "&|^<=>=!=" else f"~({x} {sign} {y})"])


def indexing(w):
    x = w.tensor("fffib", accept=lambda t: t.dim() > 0 or w.r.random() < 0.1)
    return f"{w.name()} = {x}[{index_of(w, w.value(x))}]"


def assignment(w):
    r, n = w.r, w.name()
    x = w.tensor("ffib")
    v = w.value(x)
    at = index_of(w, v, r.random() < 0.4)
    if any(p.strip() == "None" for p in at.split(",")):
        return None
    value = r.choice([arguments.number(w), arguments.number(w), arguments.broadcastable(w, v, "fib"), f"{n}[{at}] * 2", f"-{n}[{at}] + 1"])
    made = r.choice([f"{x}.clone()", f"torch.zeros({tuple(v.shape)})", f"{x} + 0", f"torch.full({tuple(v.shape)}, 2)", f"torch.zeros({tuple(v.shape)}, dtype=torch.bool)"])
    sign = r.choice(["=", "=", "=", "+=", "*=", "-="])
    return f"{n} = {made}\n{n}[{at}] {sign} {value}"


def augmented(w):
    r, n = w.r, w.name()
    x = w.tensor("ffib")
    y = arguments.broadcastable(w, w.value(x)) if r.random() < 0.6 else arguments.number(w)
    return f"{n} = {x}.clone()\n{n} {r.choice(['+=', '-=', '*=', '/=', '//=', '%=', '**=', '&=', '|=', '^='])} {y}"


def einsum(w):
    r = w.r
    names = [w.tensor("f", accept=lambda t: t.dim() > 0) for _ in range(r.choice([1, 2, 2, 2, 3]))]
    letters, parts = {}, []
    dots = r.random() < 0.2
    for n in names:
        v = w.value(n)
        shape = list(v.shape)
        head = ""
        if dots and shape:
            head, shape = "...", shape[r.randint(1, len(shape)):]
        part = ""
        for s in shape:
            free = [l for l in "ijkhbdq" if letters.get(l, s) == s]
            l = r.choice(free[:3])
            letters[l] = s
            part += l
        parts.append(head + part)
    text = ",".join(parts)
    if r.random() < 0.75:
        used = sorted(set("".join(parts).replace(".", "")))
        text += "->" + ("..." if dots else "") + "".join(r.sample(used, r.randint(0, len(used))))
    if r.random() < 0.3:
        text = text.replace(",", ", ").replace("->", " -> ")
    return f"{w.name()} = torch.einsum(\"{text}\", {', '.join(names)})"


def sdpa(w):
    r = w.r
    x = w.tensor("f", accept=lambda t: 2 <= t.dim() <= 4)
    v = w.value(x)
    if r.random() < 0.5 or v.dim() < 2 or not v.numel():  # PyTorch itself ends on an empty one
        heads = r.choice([1, 2])
        q = f"((torch.arange({heads * 2 * 3 * 2}) * 5 % 7) / 4 - 0.5).view(1, {heads * 2}, 3, 2)"
        k = f"((torch.arange({heads * 4 * 2}) * 3 % 5) / 4 - 0.5).view(1, {heads}, 4, 2)"
        return f"F.scaled_dot_product_attention({q}, {k}, {k}.flip(-1), attn_mask=None, dropout_p=0.0, is_causal={r.choice(['True', 'False'])}, scale={r.choice(['0.5', 'None'])}, enable_gqa=True)"
    extra = r.choice(["", ", is_causal=True", ", scale=0.25", f", attn_mask=torch.ones({v.shape[-2]}, {v.shape[-2]}).tril() > 0", f", attn_mask=torch.arange({v.shape[-2]}) * -0.5", ", dropout_p=0.0"])
    return f"F.scaled_dot_product_attention({x}, {x}.flip(-2), {x} * 2{extra})"


def python_call(w, name, place):
    """A call of one of Python's functions, or of a row whose arguments are numbers."""
    r = w.r
    num, whole = (lambda: arguments.number(w)), (lambda: arguments.number(w, True))
    x = w.tensor("fi", accept=lambda t: t.dim() > 0)
    some = f"[{num()}, {num()}, {num()}]"
    if place == 8:
        positive = r.choice(["2", "0.5", "3.75", "10", "1.5", "7"])
        return {"isinf": f"math.isinf({num()})", "log": r.choice([f"math.log({positive})", f"math.log({positive}, base)".replace("base", r.choice(["2", "10.0"]))]), "pow": f"math.pow({positive}, {whole()})"}.get(
            name, f"math.{name}({r.choice([positive, positive, num(), '-2.5'])})")
    if place == 64:
        return None
    if place == 16:
        start = r.choice(["", f", {whole()}"])
        calls = {
            "int": [f"int({num()})", f"int({num()} / 3)", "int()", f"int({x}.sum() > 1)"], "float": [f"float({num()})", "float('inf')", "float('-inf')", f"float({x}.sum())", "float()"],
            "bool": [f"bool({num()})", "bool()", f"bool({some})"], "abs": [f"abs({num()})", f"abs({x})"], "round": [f"round({num()})", "round(2.5)", "round(-1.5)"],
            "min": [f"min({num()}, {num()})", f"min({some})"], "max": [f"max({num()}, {num()}, {num()})", f"max({some})"],
            "sum": [f"sum({some})", f"sum({some}, {num()})", f"sum({x})", f"sum([{x}, {x}], start=0)", f"sum(t * 2 for t in [{x}, {x}])"],
            "any": [f"any({some})", f"any(k > 2 for k in {some})"], "all": [f"all({some})", f"all([k < 5 for k in {some}])"],
            "len": [f"len({x})", f"len({some})", f"len({x}.shape)"], "range": [f"list(range({r.randint(0, 4)}))", f"list(range({whole()}, {whole()}, {r.choice([1, 2, -1, -2])}))", f"[k * k for k in range(1, {r.randint(2, 5)})]"],
            "enumerate": [f"[i * v for i, v in enumerate({some})]", f"[i - v for i, v in enumerate({some}, start={whole()})]", f"[i for i, v in enumerate({some}, {whole()})]"],
            "zip": [f"[p * q for p, q in zip({some}, range(2))]", f"[p + q for p, q in zip({some}, {some})]"], "list": [f"list({x}.shape)", "list()", f"list({x})"],
            "tuple": [f"tuple({some})", "tuple()", f"tuple(k + 1 for k in {some})"], "reversed": [f"list(reversed({some}))", f"[k for k in reversed(range(3))]"],
            "slice": [f"{x}[slice({r.choice(['1', '2', '1, None', '0, 2', '0, 3, 2', 'None, None, 2'])})]", f"{some}[slice(1)]", f"{some}[slice(0, 3, 2)]"],
            "isinstance": [f"isinstance({num()}, int)", f"isinstance({num()}, (int, float))", f"isinstance({x}, torch.Tensor)", f"isinstance({some}, list)", f"isinstance(True, bool)", f"isinstance({some}, tuple)"]}
        return r.choice(calls[name])
    t = r.choice(arguments.DTYPES)
    return r.choice({
        "einsum": ["torch.einsum('i,i->i', torch.ones(3), torch.arange(3) / 2)", einsum(w).split(" = ", 1)[1]],
        "finfo": [f"torch.finfo(torch.float32).{r.choice(['min', 'max', 'eps', 'tiny'])}", f"{x}.masked_fill({x} > 1, torch.finfo({x}.dtype).min)", "torch.finfo(dtype=torch.float32).max",
                  "torch.finfo(torch.float16).max", "torch.finfo(torch.bfloat16).eps", "torch.finfo().eps"],
        "iinfo": [f"torch.iinfo(dtype=torch.int16).max", f"torch.iinfo(torch.{r.choice(['int32', 'int16', 'int8', 'uint8'])}).{r.choice(['min', 'max'])}", "torch.iinfo(dtype=torch.int32).max"],
        "sym_sqrt": [f"torch.sym_sqrt({r.choice(['2.25', '4', '3'])})"],
        "tensor": [f"torch.tensor({arguments.data(w, name)})", f"torch.tensor({arguments.data(w, name)}, dtype={t})"],
        "as_tensor": [f"torch.as_tensor({arguments.data(w, name)})", f"torch.as_tensor({arguments.data(w, name)}, dtype={t})"],
        "scalar_tensor": [f"torch.scalar_tensor({num()})", f"torch.scalar_tensor({num()}, dtype={t})"],
        "arange": [f"torch.arange({r.randint(0, 5)})", f"torch.arange({r.randint(-3, 1)}, {r.randint(1, 4)})", f"torch.arange(0, {r.randint(1, 7)}, {r.choice([1, 2, 3, 0.5])})", f"torch.arange(5, -1, {r.choice([-1, -2])})",
                   f"torch.arange({r.randint(0, 4)}, dtype={t})", f"torch.arange(1, end=5, step=2)", f"torch.arange(0.0, 1.0, 0.25)", f"torch.arange({num()}, {num()}, {num()})",
                   f"torch.arange(start=1, end=4, step=1)"],
        "eye": [f"torch.eye({r.randint(0, 4)})", f"torch.eye({r.randint(1, 3)}, {r.randint(1, 4)}, dtype={t})", "torch.eye(2, m=3)", f"torch.eye(2, dtype={t})"],
        "full": [f"torch.full(({r.randint(0, 3)}, 2), {num()})", f"torch.full((2,), {num()}, dtype={t})", f"torch.full(size=(2, 1), fill_value={num()})", f"torch.full({x}.shape, float('-inf'))"]}[name])


def python(w):
    r, n, m = w.r, w.name(), w.name()
    x, y = w.tensor("f"), w.tensor("fi")
    k, c = arguments.number(w), r.choice(["0.5", "2", "-1.25", "3"])
    i, j = r.randint(-9, 9), r.choice([-4, -3, -2, 2, 3, 5])
    if r.random() < 0.02:  # memory that is shared: refused on purpose where it shows
        return r.choice([f"{n} = torch.zeros(3, 2)\n{m} = {n}[0]\n{m}[1] = {c}", f"{n} = {x}.clone()\n{m} = {n}.view(-1)\n{n} *= 2", f"{n} = {x}.clone()\n{m} = {n}\n{m} -= 1"])
    return r.choice([
        f"{n} = {x}\nfor k in range({r.choice(['1, 4', '3', '4, 0, -2'])}):\n    if k % 2 == {r.choice([0, 1])}:\n        continue\n    {n} = {n} * 0.5 + {x} * k",
        f"{n} = [{x} * k for k in {r.choice(['(1, 2, 3)', 'range(3)', '[-1, 0.5]'])}{r.choice(['', ' if k > 0'])}]\n{m} = sum({n})",
        f"f{n} = lambda u, s={c}: u * s + 1\n{n} = f{n}({x})\n{m} = f{n}({y}, s={k})",
        f"def h{n}(u, v={c}, *, back=False):\n    w = u * v\n    if back:\n        return -w, v\n    return w, v\n{n}, q{n} = h{n}({x})\n{m}, _ = h{n}({y}, back=True)",
        f"def h{n}(*us):\n    return sum(us) + len(us)\n{n} = h{n}({x}, {c}, 2)",
        f"{n} = {x} if {y}.numel() > {r.randint(0, 8)} else -{x}", f"{n}, *{m} = {x}.shape, {k}, {c}\n{m} = {m}[-1]",
        f"{n} = {i} // {j}\n{m} = {i} % {j}", f"{n} = ({i} / 4) // {j}\n{m} = {i}.5 % {j}", f"{n} = 2 ** {r.randint(-3, 6)}\n{m} = ({i}) ** {r.choice([0, 1, 2, 3])}",
        f"{n} = {i} if {i} < {k} <= 5 else {j}", f"{n} = not {k} or {i} and {j}\n{m} = ({k} is None, {i} in (1, {i}), {j} not in [2, 3])",
        f"{n} = [{k}, {c}, {i}]\n{n}.append({j})\n{m} = {n}[{r.choice(['-1', '1:', '::-1', '::2', '-3:-1', '0'])}]",
        f"{n} = ({k},) * 2 + ({i}, {j})\n{m} = {n}[{r.choice(['-2', ':3', '1::2'])}]",
        f"{n} = 0\nwhile {n} < {r.randint(1, 5)}:\n    {n} += 2\n    if {n} == 4:\n        break\nelse:\n    {n} = -1",
        f"{n} = {x}.clone()\n{n}.masked_fill_({n} > {k}, {c})", f"{n} = {y}.clone()\n{m} = {n}.masked_fill_({n} < 1, 0) + 1",
        f"{n} = {x}.max(dim=-1, keepdim=True).values\n{m} = {x}.min(dim=-1).indices", f"{n}, {m} = {x}.max(-1)", f"{n} = {x}.min(0)[0]",
        f"{n} = {x}\n{m} = {n} * 1\n{m} += {k}", f"{n} = torch.where({x} > {k}, {x}, {c})", f"{n} = ({x} > {k}) & ({x} < {c})\n{m} = {n}.sum() + {n}", f"{n} = ({y} >= 0) * {x} + True",
        f"{n} = {x}.argsort(-1, stable=True).argsort(-1)", f"{n} = {x}.shape\n{m} = {n}[0] * {n}[-1]", f"{n} = {x}.size(-1) ** -0.5\n{m} = {x} * {n}",
        f"{n} = torch.arange({x}.shape[-1])[None, :] <= torch.arange({x}.shape[-1])[:, None]\n{m} = {n}.int().cumsum(-1)",
        f"{n}, {m} = {x}.chunk(2, dim=-1)", f"{n} = torch.cat([-{x}[..., 1:], {x}[..., :1]], dim=-1)", f"{n} = tuple(t + 1 for t in {x}.unbind(0))",
        f"{n} = ({y}[..., None] == {y}[..., None, :]).any(-1)", f"{n} = {x}.to({y})\n{m} = {x}.to({x}.device)", f"{n} = {x}.new_zeros({x}.shape[:1]) + {c}",
        f"{n} = -{i} % {abs(j)} - (-{abs(i)} // {abs(j)})\n{m} = ~{abs(i)} & 7 | {abs(j)} ^ 1", f"{n} = {x}[{x}.dim() * (None,)]", f"{n} = (*{x}.shape[:1], -1)\n{m} = {x}.reshape({n})"])


def statement(w):
    return w.r.choice([operators, operators, operators, indexing, indexing, assignment, augmented, einsum, python, python, python])(w)


def buckets(w):
    """Integers that hang on float32 arithmetic of positions: recorded from the plain run alone."""
    r = w.r
    n, exact, most = r.randint(20, 64), r.choice([2, 3, 4, 8]), r.choice([10, 16, 20, 32, 64, 100, 128])
    d = r.choice([f"torch.arange({n})", f"(torch.arange({n // 2})[:, None] - torch.arange(5)[None, :]).abs()", "a.abs()"])
    log = r.choice(["torch.log(d.float() / E) / math.log(M / E) * K", "torch.log2(d.float() / E) * K", "torch.log(d.float() / E) / torch.log(torch.tensor(M / E)) * K", "(d.float() / E).log() * (K / math.log(M / E))",
                    "torch.sqrt(d.float() / E) * K", "d / E * K", "d.float() * 0.1 * K", "d.float().pow(0.5) / 0.3", "(d.float() / E).log1p() * K", "torch.exp(-d.float() / E) * M", "d % E / 0.7 * K",
                    "(d.float() * 1.1).sin() * M", "torch.sigmoid(d.float() / E - 1) * M", "torch.tanh(d.float() / M) * M", "torch.exp2(d.float() / E % 4) * K"])
    log = log.replace("E", str(exact)).replace("M", str(most)).replace("K", str(r.choice([4, 8, 16, 3])))
    cast = r.choice(["long()", "int()", "floor().long()", "round().int()", "ceil().int()", "trunc().long()", "to(torch.int32)", "to(torch.long)"])
    return [f"d = {d}.clamp(min=1)", f"r1 = {exact} + ({log}).{cast}", f"r2 = torch.where(d < {exact}, d, r1.clamp(max={most}))", f"r3 = {log} >= {r.choice(['1', '2.5', '0.3'])}", f"r4 = ({log}) == ({log}).floor()"]
