# Texts for the arguments of each row of the table, by the parameter's name. Sloppy on purpose: what PyTorch refuses is dropped.
# SPDX-License-Identifier: Apache-2.0
import torch

FLOAT_ONLY = {"matmul", "softmax", "log_softmax", "mean", "var", "std", "norm", "normalize", "rms_norm", "layer_norm", "silu", "gelu", "softplus",
              "logsigmoid", "leaky_relu", "elu", "linear", "scaled_dot_product_attention", "mv", "mm", "bmm", "dot"}
WHOLE = {"bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not", "logical_and", "logical_or", "logical_xor", "logical_not"}
POSITIVE = {"log", "log2", "log10", "sqrt", "rsqrt", "log1p"}
DTYPES = ["torch.float32", "torch.float32", "torch.int64", "torch.int32", "torch.long", "torch.bool", "torch.float64", "torch.float", "torch.int",
          "torch.uint8", "torch.int16", "torch.int8", "torch.float16", "torch.bfloat16"]
FLOAT_TYPES = ["torch.float32", "torch.float", "torch.float64"]


def listed(items, r, one=True):
    """(2, 3), [2, 3] or, where the call takes a tail, 2, 3."""
    text = ", ".join(map(str, items))
    forms = [f"({text}{',' if len(items) == 1 else ''})", f"[{text}]"] + ([text] * 2 if one and items else [])
    return r.choice(forms)


def sizes(r, most=3):
    return [r.choice([1, 2, 2, 3, 3, 4, 0]) if r.random() < 0.15 else r.choice([1, 2, 3]) for _ in range(r.randint(1, most))]


def number(w, whole=False):
    r = w.r
    names = [n for n, v in w.numbers() if not whole or type(v) is int]
    if names and r.random() < 0.25:
        return r.choice(names)
    if whole:
        return str(r.choice([0, 1, 2, 3, -1, -2, 5, -7]))
    return str(r.choice([0, 1, 2, -1, 3, 0.5, -0.25, 1.5, 2.0, -3, 7, 0.1, -1.0, 1e-3]))


def dim(w, x, extra=0):
    n = max(x.dim() + extra, 1)
    return w.r.randrange(-n, n)


def dims(w, x):
    r = w.r
    if x.dim() > 1 and r.random() < 0.3:
        return listed([d if r.random() < 0.5 else d - x.dim() for d in r.sample(range(x.dim()), 2)], r, False)
    return str(dim(w, x))


def factors(w, x):
    n, out = x.numel(), []
    while n > 1 and len(out) < 3:
        f = w.r.choice([d for d in range(1, n + 1) if n % d == 0])
        out.append(f)
        n //= f
    out.append(n)
    w.r.shuffle(out)
    if w.r.random() < 0.4 and x.numel():
        out[w.r.randrange(len(out))] = -1
    return out


def expanded(w, x):
    r = w.r
    out = [r.choice([-1, s]) if s != 1 else r.choice([1, 2, 3, -1]) for s in x.shape]
    return [r.choice([1, 2]) for _ in range(r.choice([0, 0, 1]))] + out if out or r.random() < 0.5 else [2]


def broadcastable(w, x, kinds="fib"):
    def fits(t):
        try:
            return len(torch.broadcast_shapes(t.shape, x.shape)) <= 4
        except RuntimeError:
            return False
    return w.tensor(kinds, accept=fits)


def other(w, x, row):
    if w.r.random() < 0.35 and row not in WHOLE:
        return number(w)
    if row in WHOLE:
        return broadcastable(w, x, "b" if x.dtype == torch.bool else "ib" if row.startswith("bitwise") else "fib")
    return broadcastable(w, x)


def positions(w, x, along):
    """An index tensor of the shape of x, within the axis `along`."""
    n = x.shape[along] if x.dim() else 1
    shape = ", ".join(map(str, x.shape))
    return f"(torch.arange({x.numel()}) * {w.r.choice([1, 2, 3, 5])} % {max(n, 1)}).view({shape})" if x.dim() else "torch.tensor(0)"


def indices(w, n):
    return "torch.tensor([" + ", ".join(str(w.r.randrange(max(n, 1))) for _ in range(w.r.choice([1, 2, 3, 4]))) + "])"


def subject(w, row):
    """The first tensor: its text, its value."""
    kinds = "f" if row in FLOAT_ONLY else "bi" if row in WHOLE else "fffib"
    rank = {"mm": (2, 2), "bmm": (3, 3), "mv": (2, 2), "dot": (1, 1), "outer": (1, 1), "t": (0, 2), "tril": (2, 4), "triu": (2, 4), "mT": (2, 4),
            "matmul": (1, 4), "linear": (1, 4), "unflatten": (1, 4), "T": (2, 2), "index_select": (1, 4)}.get(row, (0, 4))
    text = w.tensor(kinds, accept=lambda t: rank[0] <= t.dim() <= rank[1])
    if row in POSITIVE and w.r.random() < 0.7:
        text = f"({text}.abs() + {w.r.choice([0.5, 1, 2])})"
    if row == "item":
        text = f"{text}.sum()"
    if row in ("atan2", "pow") and w.r.random() < 0.5:
        text = f"{text}.abs()"
    return text, w.value(text)


def matrix(w, x, row):
    n = x.shape[-1] if x.dim() else 1
    m = w.r.choice([1, 2, 3])
    near = w.tensor("f", accept=lambda t: t.dim() >= 1 and t.shape[-2 if t.dim() > 1 else -1] == n)
    made = {"mv": f"(torch.arange({n}) / 4)", "dot": f"(torch.arange({n}) / 4 - 0.5)",
            "bmm": f"(torch.arange({x.shape[0] * n * m if x.dim() else 1}) / 8).view({x.shape[0] if x.dim() else 1}, {n}, {m})"}
    return made.get(row, w.r.choice([near, f"(torch.arange({n * m}) / 4 - 1).view({n}, {m})", f"(torch.arange({n}) / 4)"]))


def argument(w, row, name, x):
    """The text of parameter `name` of `row`, called on x; None leaves it out."""
    r = w.r
    if row in ("sum", "prod") and name == "dtype":
        return r.choice(FLOAT_TYPES + ["torch.int64", "torch.int32"])
    if row in ("softmax", "log_softmax", "mean") and name == "dtype":
        return r.choice(FLOAT_TYPES)
    if name == "dtype":
        return r.choice(DTYPES)
    if name in ("keepdim", "descending", "unbiased", "stable"):
        return r.choice(["True", "True", "False"]) if name != "stable" else "True"
    if name == "dim":
        if row in ("sum", "prod", "mean", "amax", "amin", "any", "all", "var", "std", "norm", "logsumexp", "count_nonzero", "squeeze") and row != "prod":
            return dims(w, x)
        return str(dim(w, x, 1 if row in ("unsqueeze", "stack") else 0))
    special = {
        "fill_value": lambda: number(w), "value": lambda: number(w), "n": lambda: str(r.randint(0, 4)), "m": lambda: str(r.randint(0, 4)),
        "alpha": lambda: str(r.choice([2, 3, -1, 0.5])), "exponent": lambda: r.choice(["2", "3", "0.5", "-1", "0", "-0.5", "1.5", broadcastable(w, x, "i")]),
        "other": lambda: matrix(w, x, row) if row == "matmul" else w.tensor("fib") if row in ("reshape_as", "view_as", "expand_as", "type_as") else
        other(w, x, row),
        "rounding_mode": lambda: r.choice(["'floor'", "'trunc'", "None"]), "approximate": lambda: r.choice(["'none'", "'tanh'"]),
        "beta": lambda: "1.0", "negative_slope": lambda: "0.1", "p": lambda: r.choice(["2", "2.0"]), "eps": lambda: r.choice(["1e-5", "1e-3"]),
        "nan": lambda: number(w), "posinf": lambda: "100.0", "neginf": lambda: "-50.0",
        "min": lambda: r.choice([number(w), number(w), broadcastable(w, x, "fi")]), "max": lambda: r.choice([number(w), number(w), broadcastable(w, x, "fi")]),
        "condition": lambda: broadcastable(w, x, "b"), "mask": lambda: broadcastable(w, x, "b"), "correction": lambda: r.choice(["0", "1", "2"]),
        "normalized_shape": lambda: f"{w.last}.shape[-1:]" if r.random() < 0.6 else str(list(x.shape[-r.randint(1, max(x.dim(), 1)):])),
        "weight": lambda: f"(torch.arange({x.shape[-1] * 2 if x.dim() else 2}) / 4).view(2, {x.shape[-1] if x.dim() else 1})" if row == "linear" else f"torch.full({w.last}.shape[-1:], 0.75)",
        "bias": lambda: "torch.tensor([0.5, -1.0])" if row == "linear" else f"torch.ones({w.last}.shape[-1:])",
        "start_dim": lambda: str(dim(w, x)), "end_dim": lambda: str(dim(w, x)), "dim0": lambda: str(dim(w, x)), "dim1": lambda: str(dim(w, x)),
        "source": lambda: str(dim(w, x)), "destination": lambda: str(dim(w, x)), "shape": lambda: listed(factors(w, x), r),
        "dims": lambda: listed(sizes(r, 3), r) if row == "tile" else listed(r.sample(range(x.dim()), r.randint(1, x.dim())) if row == "flip" and x.dim() else
                                                                             [d - x.dim() * r.choice([0, 1]) for d in r.sample(range(x.dim()), x.dim())], r),
        "repeats": lambda: str(r.choice([0, 1, 2, 3])) if row == "repeat_interleave" else listed([r.choice([1, 1, 2]) for _ in range(max(1, x.dim() + r.choice([0, 1])))], r),
        "start": lambda: str(r.choice([0, 0, 1, -1])), "length": lambda: str(r.choice([0, 1, 2])), "chunks": lambda: str(r.randint(1, 4)),
        "split_size": lambda: str(r.randint(1, 3)), "mat2": lambda: matrix(w, x, row), "vec": lambda: matrix(w, x, row), "tensor": lambda: matrix(w, x, row), "vec2": lambda: w.tensor("f", accept=lambda t: t.dim() == 1),
        "src": lambda: w.tensor("f" if x.is_floating_point() else "i", accept=lambda t: t.shape == x.shape and t.dtype == x.dtype),
        "diagonal": lambda: str(r.randint(-2, 2)), "pad": lambda: listed([r.choice([0, 1, 2, 1, -1]) for _ in range(2 * r.randint(1, min(2, max(1, x.dim()))))], r, False),
        "mode": lambda: "'constant'", "data": lambda: data(w, row)}
    if name == "size":
        if row in ("view",):
            return listed(factors(w, x), r)
        if row in ("expand", "broadcast_to"):
            return listed(expanded(w, x), r, row == "expand")
        return listed(sizes(r), r, row != "full" and row != "new_full")
    if name == "sizes":
        return str([d for d in factors(w, x)][:2])
    if name == "index":
        along = w.along % max(x.dim(), 1)
        if row == "select":
            n = x.shape[along] if x.dim() else 1
            return str(r.randrange(-n, n)) if n else "0"
        return indices(w, x.shape[along] if x.dim() else 1) if row == "index_select" else positions(w, x, along)
    if name == "indices":
        return positions(w, x, w.along % max(x.dim(), 1))
    return special[name]() if name in special else None


def data(w, row):
    r = w.r
    if row == "scalar_tensor" or r.random() < 0.25:
        return number(w)
    kind = r.choice([[0, 1, 2, 3, -4], [0.5, 1, -2.25, 3], ["True", "False"]])
    if r.random() < 0.3:
        return str([[r.choice(kind) for _ in range(2)] for _ in range(r.choice([1, 2]))]).replace("'", "")
    return str([r.choice(kind) for _ in range(r.choice([0, 1, 2, 3]))]).replace("'", "")
