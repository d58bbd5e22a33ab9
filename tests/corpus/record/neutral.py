# How a text is run twice in PyTorch: wide (every float is float64, whatever the text casts to) and plain (as it stands).
# Values that PyTorch leaves undefined, and integers that no double holds, raise Undefined: nothing is recorded of them.
# SPDX-License-Identifier: Apache-2.0
import contextlib

import torch
from torch.overrides import TorchFunctionMode

FLOATS = (torch.float16, torch.bfloat16, torch.float32, torch.float64)
CASTS = ("float", "double", "half", "bfloat16")
F32 = torch.finfo(torch.float32)
FINFO = torch.finfo


class Undefined(Exception):
    pass


def widened(x):
    if isinstance(x, torch.dtype):
        return torch.float64 if x in FLOATS else x
    if isinstance(x, (tuple, list)) and any(isinstance(i, torch.dtype) for i in x):
        return type(x)(widened(i) for i in x)
    return x


def tensors(x):
    if isinstance(x, torch.Tensor):
        yield x
    elif isinstance(x, (tuple, list)):
        for i in x:
            yield from tensors(i)


class Watched(TorchFunctionMode):
    """Runs every torch function; `wide` turns each float type into float64 on the way."""

    def __init__(self, wide):
        super().__init__()
        self.wide = wide

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = dict(kwargs or {})
        name = func.__name__
        if name == "cuda":  # where a value lives changes nothing of it
            return args[0]
        if name == "rms_norm" and len(args) < 4 and kwargs.get("eps") is None and not self.wide and args[0].dtype == torch.float64:
            raise Undefined("eps hangs on a dtype that the wide run does not know")
        if self.wide:
            if name in CASTS and len(args) == 1:
                return args[0].to(torch.float64)
            args, kwargs = tuple(widened(a) for a in args), {k: widened(v) for k, v in kwargs.items()}
            if name == "nan_to_num":  # the limits are those of float32
                kwargs.setdefault("posinf", F32.max)
                kwargs.setdefault("neginf", F32.min)
                if kwargs["posinf"] is None:
                    kwargs["posinf"] = F32.max
                if kwargs["neginf"] is None:
                    kwargs["neginf"] = F32.min
            if name == "rms_norm" and len(args) < 4 and kwargs.get("eps") is None:
                kwargs["eps"] = F32.eps
        if any(n in name for n in ("div", "mod", "remainder")):  # the least integer by -1 ends a CPU build of PyTorch
            with torch._C.DisableTorchFunction():
                for t in tensors(args):
                    if t.numel() and not t.is_floating_point() and t.dtype != torch.bool and int(t.min()) == torch.iinfo(t.dtype).min < 0:
                        raise Undefined("the least integer is divided")
        out = func(*args, **kwargs)
        if name in ("empty", "empty_like"):  # whatever memory held: zeros here as there
            return out.zero_()
        if name in ("__get__", "numel", "dim", "size"):
            return out
        with torch._C.DisableTorchFunction():
            if name == "__setitem__" and not args[0].is_floating_point():
                out = args[0]
            given = [t for t in tensors(args) if t.is_floating_point()]
            for t in tensors(out):
                if t.numel() == 0 or t.is_floating_point() or t.dtype == torch.bool:
                    continue
                if t.dtype == torch.int64 and (int(t.max()) > 2**53 or int(t.min()) < -2**53):
                    raise Undefined("an integer beyond 2^53")
                if name in ("long", "int", "to", "type", "type_as", "bool", "sum", "prod", "__setitem__") and given:
                    x = given[0]
                    if x.numel() and not (x.isfinite() & (x.abs() < 2**31)).all():
                        raise Undefined("a float that is no integer")
        return out


@contextlib.contextmanager
def run(wide):
    torch.set_default_dtype(torch.float64 if wide else torch.float32)
    if wide:
        torch.finfo = lambda t=torch.float32: F32 if t == torch.float64 else FINFO(t)
    try:
        with Watched(wide):
            yield
    finally:
        torch.finfo = FINFO
        torch.set_default_dtype(torch.float32)


def agree(wide, plain):
    """Do both runs say the same, up to float32's rounding? Integers and booleans exactly, NaN and inf in the same places."""
    if isinstance(plain, (tuple, list)):
        return isinstance(wide, (tuple, list)) and len(wide) == len(plain) and all(map(agree, wide, plain))
    if not isinstance(plain, torch.Tensor):
        if isinstance(plain, float):
            return isinstance(wide, float) and agree(torch.tensor(wide, dtype=torch.float64), torch.tensor(plain, dtype=torch.float64))
        return type(wide) is type(plain) and (wide == plain or not isinstance(plain, (bool, int, str)))
    if wide.shape != plain.shape or wide.is_floating_point() != plain.is_floating_point():
        return False
    if not plain.is_floating_point():
        return wide.dtype == plain.dtype and torch.equal(wide, plain)
    p = plain.double()
    if not torch.equal(wide.isnan(), p.isnan()) or not torch.equal(wide.isinf(), p.isinf()):
        return False
    d = torch.where(wide == p, 0.0, (wide - p).abs()).nan_to_num(0.0)
    return not d.numel() or bool((d <= 1e-4 * wide.abs().nan_to_num(1.0, 1.0, 1.0).clamp(min=1)).all())
