"""libcubridge through its C API (bindings/c/include/cubridge.h): a kernel of a specification, and launches of it.

SPDX-License-Identifier: Apache-2.0"""
import ctypes, hashlib, json, os, subprocess, time

INT, UINT, I64, SIZE, PTR, STR = (ctypes.c_int32, ctypes.c_uint32, ctypes.c_int64, ctypes.c_size_t, ctypes.c_void_p, ctypes.c_char_p)
FALLBACK, PENDING = 1, 2
DTYPES = {"fp16": 1, "bf16": 2, "fp32": 3, "i32": 7, "i64": 8}
TORCH = {"torch.float32": "fp32", "torch.int32": "i32", "torch.int64": "i64", "torch.bfloat16": "bf16", "torch.float16": "fp16"}
MADE = ("rules", "model", "generic")


def struct(name, *fields):
    return type(name, (ctypes.Structure,), {"_fields_": list(fields)})


Config = struct("Config", ("struct_size", SIZE), *[(n, STR) for n in ("store", "remote", "trusted_keys", "worker")],
                ("workers", INT), ("verify", INT), ("llm", PTR), ("user", PTR), ("log", PTR), ("notify", PTR))
Param = struct("Param", ("name", STR), ("kind", INT), ("dtype", INT), ("value", ctypes.c_double))
Source = struct("Source", ("struct_size", SIZE), ("text", STR), ("length", SIZE), ("function", STR), ("mask", STR),
                ("params", ctypes.POINTER(Param)), ("param_count", SIZE))
Request = struct("Request", ("struct_size", SIZE), ("spec", PTR), ("device", INT), ("arch", ctypes.c_char * 12),
                 *[(n, INT) for n in ("q_dtype", "kv_dtype", "o_dtype", "head_dim", "head_dim_v", "group", "heads", "layout",
                                      "page_size", "phase", "rows", "empty_rows", "lse", "alignment", "mode")], ("flags", UINT))
Result = struct("Result", ("struct_size", SIZE), ("outcome", INT), ("reasons", UINT), ("kernel", PTR), ("job", ctypes.c_uint64))
Tensor = struct("Tensor", ("data", PTR), ("outer", I64), ("row", I64), ("head", I64))
Scale = struct("Scale", ("data", PTR), ("request", I64), ("head", I64))
Operand = struct("Operand", ("data", PTR), ("value", ctypes.c_double), ("size", I64 * 4), ("stride", I64 * 4),
                 ("per_request", I64), ("begin", PTR))
Args = struct("Args", ("struct_size", SIZE), *[(n, Tensor) for n in ("q", "k", "v", "o", "lse")], ("k_scale", Scale),
              ("v_scale", Scale), ("operands", ctypes.POINTER(Operand)), ("operand_count", SIZE),
              *[(n, INT) for n in ("requests", "heads_kv", "head_begin", "total_q", "max_q", "max_kv")],
              *[(n, PTR) for n in ("cu_seqlens_q", "cu_seqlens_k", "seq_lens_k", "first_k", "page_table", "page_begin")],
              ("page_stride", I64), ("workspace", PTR), ("workspace_size", SIZE), ("flags", UINT))
Info = struct("Info", ("struct_size", SIZE), ("id", STR), ("variant", STR), ("report", STR), ("made", INT), ("from_", INT),
              ("verified", INT), ("error_ratio", ctypes.c_float))


class Failure(RuntimeError):
    pass


def new(kind, **values):
    return kind(struct_size=ctypes.sizeof(kind), **values)


class Library:
    """One context. store '' keeps nothing."""

    def __init__(self, path, store="", workers=4):
        if os.path.isdir(path):
            path = os.path.join(path, "libcubridge.so")
        self.command, self.store = os.path.join(os.path.dirname(path), "cubridge"), store
        self.lib = ctypes.CDLL(path)
        self.lib.cubridge_message.restype = STR
        self.lib.cubridge_operand_name.restype = STR
        self.lib.cubridge_operand_name.argtypes = [PTR, SIZE]
        self.lib.cubridge_launch.argtypes = [PTR, PTR, PTR]
        self.lib.cubridge_close.argtypes = [PTR]
        self.context = PTR()
        # A kernel by rules has been executed against its text, not run on this GPU: the harness checks what it times.
        self._call("open", ctypes.byref(new(Config, store=store.encode(), workers=workers, verify=1)), ctypes.byref(self.context))

    def close(self):
        self.lib.cubridge_close(self.context)
        self.context = None

    def _call(self, name, *args):
        if status := getattr(self.lib, "cubridge_" + name)(*args):
            raise Failure(f"cubridge_{name}: {status}: {self.lib.cubridge_message().decode()}")

    def parse(self, path, constants, operands):
        """path: FILE[:FUNCTION[+MASK]], or the name of a built-in text; operands: tensors say their types."""
        file, _, function = path.partition(":")
        function, _, mask = function.partition("+")
        text = None
        if file.endswith(".py"):
            with open(file, "rb") as f:
                text = f.read()
        else:
            function = file
        params = [Param(n.encode(), 0, 0, float(x)) for n, x in constants.items()]
        params += [Param(n.encode(), 2, DTYPES[TORCH[str(x.dtype)]], 0.0) for n, x in operands.items() if hasattr(x, "dtype")]
        spec = PTR()
        self._call("parse", self.context, ctypes.byref(new(
            Source, text=text, function=function.encode() or None, mask=mask.encode() or None,
            params=(Param * max(1, len(params)))(*params), param_count=len(params))), ctypes.byref(spec))
        return spec

    def kernel(self, path, dtype, group, D, Dv, lse=False, device=0, arch="", constants={}, operands={}):
        return Kernel(self, self.parse(path, constants, operands),
                      dict(device=device, arch=arch.encode(), q_dtype=DTYPES[dtype], head_dim=D, head_dim_v=Dv, group=group, lse=int(lse)))


class Kernel:
    """Asked for at once, made on the library's threads; ready() waits."""

    def __init__(self, library, spec, request):
        self.library, self.spec = library, spec
        self.request = new(Request, spec=spec, **request)
        self.result = new(Result)
        self._ask()

    def _ask(self):
        self.library._call("get_kernel", self.library.context, ctypes.byref(self.request), ctypes.byref(self.result))

    def ready(self, seconds=120):
        end = time.monotonic() + seconds
        while self.result.job and time.monotonic() < end:
            code = self.library.lib.cubridge_wait(self.library.context, ctypes.c_uint64(self.result.job), I64(1000))
            if code == 4:
                continue
            self._ask()
            if code:
                break
        if not self.result.kernel:
            raise Failure("no kernel: " + self.library.lib.cubridge_message().decode())
        return self

    def describe(self):
        """made_by, expert, and the digest of the kernel's text (of the artifact where the store keeps nothing)."""
        info = new(Info)
        self.library._call("describe", PTR(self.result.kernel), ctypes.byref(info))
        report = json.loads(info.report or b"{}")
        out = dict(made_by=MADE[info.made], expert=report.get("expert"), source=info.id.decode()[:16], from_artifact=True)
        if self.library.store and os.path.exists(self.library.command):
            done = subprocess.run([self.library.command, "cache", "show", info.id.decode(), "--cache", self.library.store, "--json"],
                                  capture_output=True, text=True)
            if done.returncode == 0:
                out.update(source=hashlib.sha256(json.loads(done.stdout)["cuda"].encode()).hexdigest()[:16])
                del out["from_artifact"]
        return out

    def bind(self, q, k, v, o, lse, operands):
        """A launch with these tensors ([B, H, S, D] views); the operands are by name, tensors or numbers."""
        import torch
        a, keep, values = new(Args), [q, k, v, o, lse], []
        for name, x in (("q", q), ("k", k), ("v", v), ("o", o)):
            setattr(a, name, Tensor(x.data_ptr(), x.stride(0), x.stride(2), x.stride(1)))
        if lse is not None:
            a.lse = Tensor(lse.data_ptr(), lse.stride(0), lse.stride(2), lse.stride(1))
        a.requests, a.heads_kv, a.max_q, a.max_kv = q.size(0), k.size(1), q.size(2), k.size(2)
        a.total_q = q.size(0) * q.size(2)
        while name := self.library.lib.cubridge_operand_name(self.spec, len(values)):
            x, operand = operands[name.decode()], Operand()
            if torch.is_tensor(x):
                operand.data = x.data_ptr()
                for axis in range(x.dim()):
                    operand.size[axis], operand.stride[axis] = x.size(axis), x.stride(axis)
                keep.append(x)
            else:
                operand.value = float(x)
            values.append(operand)
        a.operands, a.operand_count = (Operand * max(1, len(values)))(*values), len(values)
        size = SIZE()
        self.library._call("workspace", self.library.context, ctypes.byref(self.request), ctypes.byref(a), ctypes.byref(size))
        space = torch.empty(max(1, size.value), dtype=torch.uint8, device=q.device)
        a.workspace, a.workspace_size = space.data_ptr(), size.value
        keep.append(space)
        function, kernel, at = self.library.lib.cubridge_launch, PTR(self.result.kernel), ctypes.byref(a)
        stream = PTR(torch.cuda.current_stream().cuda_stream)

        def launch(keep=(a, keep)):
            if function(kernel, at, stream):
                raise Failure("cubridge_launch: " + self.library.lib.cubridge_message().decode())

        return launch
