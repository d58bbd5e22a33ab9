#!/usr/bin/env python3
"""Times kernels that `cubridge adapt` makes against PyTorch's FlashAttention-2, in one process, on the GPU that is here.

usage: gpu_attention.py CUBRIDGE SPECS OUT.json [CASE...]

CUBRIDGE is the command, SPECS the folder of specifications. Every kernel is compared with float64 on a small shape
before it is timed. A figure is the median of 10 launches of each of the blocks ours, peer, ours; TFLOP/s count the pairs
that the mask keeps. SPDX-License-Identifier: Apache-2.0"""
import ctypes, datetime, json, math, os, subprocess, sys, tempfile
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

I64, PTR, INT = ctypes.c_longlong, ctypes.c_void_p, ctypes.c_int


def struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


Tensor = struct("Tensor", ("data", PTR), ("outer", I64), ("row", I64), ("head", I64))
Scale = struct("Scale", ("data", PTR), ("request", I64), ("head", I64))
Operand = struct("Operand", ("data", PTR), ("value", ctypes.c_double), ("size", I64 * 4), ("stride", I64 * 4),
                 ("per_request", I64), ("begin", PTR))
Args = struct("Args", *[(n, Tensor) for n in ("q", "k", "v", "o", "lse")], ("k_scale", Scale), ("v_scale", Scale),
              ("operand", Operand * 24),
              *[(n, INT) for n in ("requests", "heads_q", "heads_kv", "head_begin", "max_q", "max_kv", "total_q", "flags")],
              *[(n, PTR) for n in ("cu_seqlens_q", "cu_seqlens_k", "seq_lens_k", "first_k", "page_table", "page_begin")],
              ("page_stride", I64), ("workspace", PTR), ("ticket", PTR), ("map_rows", INT * 4), ("map_heads", INT * 4), ("unused", I64 * 5), ("map", (ctypes.c_uint64 * 16) * 4))
assert ctypes.sizeof(Args) == 3200  # docs/kernel-abi.md


def cu(name, *args):
    code = getattr(cuda, name)(*args)
    if code:
        raise RuntimeError(f"{name}: CUDA error {code}")


def number(code, sizes):
    """The value of a postfix expression of a launch plan (docs/launch-plan.md)."""
    stack = []
    two = {"+": lambda a, b: a + b, "-": lambda a, b: a - b, "*": lambda a, b: a * b, "/": lambda a, b: a // b,
           "/^": lambda a, b: -(-a // b), "%": lambda a, b: a % b, "min": min, "max": max,
           "round_up": lambda a, b: -(-a // b) * b}
    for word in code.split():
        if word in two:
            b, a = stack.pop(), stack.pop()
            stack.append(two[word](a, b))
        elif word in sizes:
            stack.append(sizes[word])
        else:
            stack.append(int(word))
    return stack[-1]


def tensor_map(x, rows, wide):
    """The tensor map of q, k, v or o in the kernel's argument block (docs/kernel-abi.md)."""
    buffer = (ctypes.c_uint64 * 24)()  # encoded at a multiple of 64 bytes
    at = -(-ctypes.addressof(buffer) // 64) * 64
    requests, heads, n, columns = x.shape
    outer, head, row = (2 * x.stride(axis) for axis in range(3))
    by, bh = (0, 0) if requests == 1 else (outer // row, 0) if outer % row == 0 else (0, outer // head)
    dims = (ctypes.c_uint64 * 5)(columns, 2**30, heads + (requests - 1) * bh, 2**31, 2**31)
    strides = (ctypes.c_uint64 * 4)(row, head, row, 2**34 - row)
    box, steps = (ctypes.c_uint32 * 5)(64, rows, 1, 1, 1), (ctypes.c_uint32 * 5)(1, 1, 1, 1, 1)
    kind = {torch.float16: 6, torch.bfloat16: 9}[x.dtype]
    cu("cuTensorMapEncodeTiled", PTR(at), kind, 5, PTR(x.data_ptr()), dims, strides, box, steps, 0, 3, 3 if wide else 2, 0)
    return (ctypes.c_uint64 * 16).from_address(at), by, bh, buffer


class Kernel:
    def __init__(self, command, spec, arguments, dtype, dim=128):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([command, "adapt", spec, "--arch", "sm_90a" if torch.cuda.get_device_capability() == (9, 0) else
                                   "sm_%d%d" % torch.cuda.get_device_capability(), "--dtype", dtype, "--head-dim", str(dim),
                                   "--heads", "32:32", "--cache", "",
                                   "--emit", folder, "--json"] + arguments,
                                  capture_output=True, text=True)
            if done.returncode:
                raise RuntimeError(done.stderr[-500:])
            self.report = json.loads(done.stdout)
            cubin = open(folder + "/kernel.cubin", "rb").read()
            plan = open(folder + "/plan.txt").read().splitlines()
        self.module = PTR()
        cu("cuModuleLoadData", ctypes.byref(self.module), cubin)
        self.entries, self.operands, self.maps, self.ticket = [], [], [], False
        for line in plan:
            words = line.split()
            if words[0] == "workspace":
                self.workspace = line[10:]
            elif words[0] == "ticket":
                self.ticket = True
            elif words[0] == "map":
                self.maps.append((words[1], int(words[2])))
            elif words[0] == "entry":
                function = PTR()
                cu("cuModuleGetFunction", ctypes.byref(function), self.module, words[1].encode())
                block, shared = [int(x) for x in words[3:6]], int(words[7])
                cu("cuFuncSetAttribute", function, 8, shared)
                self.entries.append([function, block, shared, []])
            elif words[0] == "grid":
                self.entries[-1][3].append(line[5:])
            elif words[0] == "operand":
                self.operands.append((words[1], words[4] == "bound", float(words[5]) if len(words) > 5 else 0.0))

    def bind(self, q, k, v, o, lse, given):
        a = Args()
        keep = []
        for name, x in (("q", q), ("k", k), ("v", v), ("o", o)):
            setattr(a, name, Tensor(x.data_ptr(), x.stride(0), x.stride(2), x.stride(1)))
        a.lse = Tensor(lse.data_ptr(), lse.stride(0), lse.stride(2), lse.stride(1))
        a.requests, a.heads_q, a.heads_kv, a.max_q, a.max_kv = q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2]
        a.total_q = q.shape[0] * q.shape[2]
        sizes = dict(requests=a.requests, heads_q=a.heads_q, heads_kv=a.heads_kv, max_q=a.max_q, max_kv=a.max_kv,
                     total_q=a.total_q, head_begin=0, sm_count=torch.cuda.get_device_properties(0).multi_processor_count)
        for n, (name, bound, value) in enumerate(self.operands):
            x = given.get(name)
            if x is None or not torch.is_tensor(x):
                a.operand[n].value = float(value if x is None else x)
                continue
            a.operand[n].data = x.data_ptr()
            for axis in range(x.dim()):
                a.operand[n].size[axis], a.operand[n].stride[axis] = x.shape[axis], x.stride(axis)
                sizes[f"x{n}.{axis}"] = x.shape[axis]
            keep.append(x)
        size = number(self.workspace, sizes)
        space = torch.empty(max(1, size), dtype=torch.uint8, device="cuda")
        a.workspace = space.data_ptr()
        for name, rows in self.maps:
            words, by, bh, buffer = tensor_map(dict(q=q, k=k, v=v, o=o)[name], rows, name in "kv")
            at = "qkvo".index(name)
            a.map[at], a.map_rows[at], a.map_heads[at] = words, by, bh
        if self.ticket:
            a.ticket = a.workspace + size - 256
        parameters = (PTR * 1)(ctypes.cast(ctypes.byref(a), PTR))
        grids = [(f, [number(g, sizes) for g in grid], block, shared) for f, block, shared, grid in self.entries]

        def launch(only=None):
            stream = PTR(torch.cuda.current_stream().cuda_stream)
            if self.ticket and only is None:
                cu("cuMemsetD32Async", ctypes.c_uint64(a.ticket), 0, ctypes.c_size_t(2), stream)
            for f, grid, block, shared in grids if only is None else [grids[only]]:
                cu("cuLaunchKernel", f, *grid, *block, shared, stream, parameters, None)

        launch.entries = len(grids)
        launch.keep = (a, parameters, keep, space)
        return launch


def timed(run, launches=10):
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    times = []
    for _ in range(launches):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        run()
        end.record()
        torch.cuda.synchronize()
        times.append(begin.elapsed_time(end))
    return sorted(times)[len(times) // 2]


def documents(S):
    lengths = [S // 2, S // 4, S // 8, S - S // 2 - S // 4 - S // 8]
    return torch.repeat_interleave(torch.arange(4, device="cuda", dtype=torch.int32), torch.tensor(lengths, device="cuda"))


def grid(S):
    return torch.arange(S, device="cuda")[:, None], torch.arange(S, device="cuda")[None, :]


LSE = ["--lse", "natural"]  # as the peer
CAUSAL = lambda i, j, a: j <= i
# name: specification, options, operands of a launch by S, mask, bias
CASES = {
    "full": ("bidirectional", LSE, lambda S: {}, None, None),
    "causal": ("serving/causal_gqa.py", LSE, lambda S: {}, CAUSAL, None),
    "prefix_lm": ("paper/prefix_lm.py", LSE, lambda S: {"prefix": S // 4}, lambda i, j, a: (j <= i) | (j < a["prefix"]), None),
    "alibi": ("serving/alibi.py", LSE + ["--arg", "slopes=f32[Hq]"], lambda S: {"slopes": 2.0 ** -torch.linspace(0.25, 8, 32, device="cuda")},
              CAUSAL, lambda i, j, a: -a["slopes"][:, None, None] * (i - j).abs()),
    "document": ("flex/mods.py:document_causal", LSE + ["--arg", "document_id=i32[S]"], lambda S: {"document_id": documents(S)},
                 lambda i, j, a: (j <= i) & (a["document_id"][i] == a["document_id"][j]), None),
    "window_1024": ("serving/sliding_window.py", LSE, lambda S: {"window": 1024}, lambda i, j, a: (j <= i) & (i - j < 1024), None),
    "softcap": ("flex/mods.py:causal_and_softcap_as_score", LSE, lambda S: {}, CAUSAL, "softcap"),
    "sigmoid": ("paper/sigmoid.py", [], lambda S: {}, CAUSAL, "sigmoid"),
}


def pairs(S, mask, given):
    if mask is None:
        return S * S
    total, i = 0, torch.arange(S, device="cuda")[:, None]
    for begin in range(0, S, 1024):
        j = torch.arange(begin, min(begin + 1024, S), device="cuda")[None, :]
        total += int(mask(i, j, given).sum())
    return total


def correct(kernel, mask, bias, operands, dtype, dim=128):
    S = 257
    given = operands(S)
    q, k, v = (torch.randn(2, 32, S, dim, device="cuda", dtype=dtype) for _ in range(3))
    o, lse = torch.full_like(q, math.nan), torch.full((2, 32, S, 1), math.nan, device="cuda")
    kernel.bind(q, k, v, o, lse, given)()
    torch.cuda.synchronize()
    s = q.double() @ k.double().mT * dim ** -0.5
    i, j = grid(S)
    if callable(bias):
        s = s + bias(i, j, given).double()
    if isinstance(bias, str):
        return None  # judged by `cubridge check --gpu`
    if mask is not None:
        s = s.masked_fill(~mask(i, j, given), -math.inf)
    expected = torch.softmax(s, -1) @ v.double()
    return ((o.double() - expected).norm() / expected.norm()).item()


def main():
    command, specs, out = sys.argv[1:4]
    names = sys.argv[4:] or list(CASES)
    dtype_name = os.environ.get("BENCH_DTYPE", "bf16")
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}[dtype_name]
    rows = []
    for name in names:
        spec, options, operands, mask, bias = CASES[name]
        kernel = Kernel(command, spec if "/" not in spec else os.path.join(specs, spec), options, dtype_name)
        error = correct(kernel, mask, bias, operands, dtype)
        for S in (4096, 16384):
            B = 16384 // S
            given = operands(S)
            q, k, v = (torch.randn(B, S, 32, 128, device="cuda", dtype=dtype).transpose(1, 2) for _ in range(3))
            o, lse = torch.empty_like(q), torch.empty(B, 32, S, 1, device="cuda")
            ours = kernel.bind(q, k, v, o, lse, given)

            def peer():
                with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
                    torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=mask is not None)

            first, theirs, second = timed(ours), timed(peer), timed(ours)
            flop = 4 * 128 * B * 32 * pairs(S, mask, given)
            flop_peer = 4 * 128 * B * 32 * (S * S if mask is None else S * (S + 1) // 2)
            best = min(first, second)
            alone = [round(timed(lambda: ours(n)) * 1e3, 1) for n in range(ours.entries)] if ours.entries > 1 else None
            rows.append(dict(case=name, dtype=dtype_name, S=S, B=B, Hq=32, Hk=32, D=128, made_by=kernel.report["made_by"],
                             expert=kernel.report["expert"], error=error, us=round(best * 1e3, 1),
                             tflops=round(flop / best / 1e9, 1), spread=round(abs(first - second) / best, 3),
                             fa2_us=round(theirs * 1e3, 1), fa2_tflops=round(flop_peer / theirs / 1e9, 1),
                             fa2_is="full" if mask is None else "causal", entries_us=alone))
            print(json.dumps(rows[-1]), flush=True)
    causal = {r["S"]: r["tflops"] for r in rows if r["case"] == "causal"}
    for r in rows:
        if r["S"] in causal:
            r["of_our_causal"] = round(r["tflops"] / causal[r["S"]], 3)
        r["of_fa2"] = round(r["tflops"] / r["fa2_tflops"], 3)
    json.dump(dict(date=datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="seconds"),
                   gpu=torch.cuda.get_device_name(), commit=os.environ.get("BENCH_COMMIT", "unknown"), torch=torch.__version__, rows=rows),
              open(out, "w"), indent=1)


torch.cuda.init()
torch.zeros(1, device="cuda")
cuda = ctypes.CDLL("libcuda.so.1")
if __name__ == "__main__":
    main()
