"""What people would use instead, each behind the same face: prepare it for a case, launch it on an input set, read its output.

SPDX-License-Identifier: Apache-2.0"""
import hashlib, importlib, json, math, os, select, subprocess, sys, time
import torch
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}


class Unsupported(RuntimeError):
    pass


class Prepared:
    """launches: one an input set; output(n): its o as [B, H, S, D] after launches[n]; note: fields of the row."""

    def __init__(self, launches, output, note):
        self.launches, self.output, self.note = launches, output, note


def returning(function, sets):
    """Launches of a function that returns its output; the last of each set is kept."""
    kept = [None] * len(sets)

    def of(n):
        def launch():
            kept[n] = function(*sets[n])
        return launch

    return [of(n) for n in range(len(sets))], lambda n: kept[n]


def sdpa(case, sets, backend, source):
    from torch.nn.attention import SDPBackend, sdpa_kernel
    backend = {"cudnn": SDPBackend.CUDNN_ATTENTION, "fa2": SDPBackend.FLASH_ATTENTION}[backend]
    causal, grouped = case.variant == "causal", case.Hq != case.Hk

    def run(q, k, v):
        with sdpa_kernel(backend):
            return F.scaled_dot_product_attention(q, k, v, is_causal=causal, enable_gqa=grouped)

    try:
        run(*sets[0])
    except RuntimeError as error:
        raise Unsupported(str(error).strip().splitlines()[0][:200])
    return Prepared(*returning(run, sets), dict(source=source))


def fa3(case, sets):
    """FlashAttention-3, where its wheel was brought."""
    try:
        import flash_attn_interface as module
    except ImportError as error:
        raise Unsupported(str(error))

    def run(q, k, v):
        out = module.flash_attn_func(*(t.transpose(1, 2) for t in (q, k, v)), causal=case.variant == "causal")
        return (out[0] if isinstance(out, tuple) else out).transpose(1, 2)

    return Prepared(*returning(run, sets), dict(source=f"flash_attn_interface {getattr(module, '__version__', 'of unknown version')}"))


def flashinfer(case, sets):
    """FlashInfer's ragged prefill on requests of one length, where its wheel was brought."""
    try:
        import flashinfer as module
    except ImportError as error:
        raise Unsupported(str(error))
    ends = torch.arange(0, case.B * case.S + 1, case.S, device="cuda", dtype=torch.int32)
    wrapper = module.BatchPrefillWithRaggedKVCacheWrapper(torch.empty(256 << 20, device="cuda", dtype=torch.uint8), "NHD")
    wrapper.plan(ends, ends, case.Hq, case.Hk, case.D, head_dim_vo=case.Dv, causal=case.variant == "causal", q_data_type=DTYPES[case.dtype])

    def run(q, k, v):
        return wrapper.run(*(t.transpose(1, 2).flatten(0, 1) for t in (q, k, v))).view(case.B, case.S, case.Hq, case.Dv).transpose(1, 2)

    return Prepared(*returning(run, sets), dict(source=f"flashinfer {module.__version__}"))


def flex_parts(variant, operands, S, B, device):
    """score_mod, mask_mod and the BlockMask of a variant, with the milliseconds that the last took."""
    from torch.nn.attention.flex_attention import create_block_mask
    mask = None if variant.mask is None else variant.mask(operands)
    score = None if variant.score is None else variant.score(operands)
    if mask is None:
        return score, None, 0.0
    torch.cuda.synchronize() if device != "cpu" else None
    begin = time.perf_counter()
    blocks = create_block_mask(mask, B if variant.by_batch else None, None, S, S, device=device)
    torch.cuda.synchronize() if device != "cpu" else None
    return score, blocks, (time.perf_counter() - begin) * 1e3


def flex(case, variant, operands, sets):
    """FlexAttention, compiled for these very shapes; its inputs contiguous as [B, H, S, D]. ahead.py may have compiled it: then
    Inductor's and Triton's caches have the kernel."""
    from torch.nn.attention.flex_attention import flex_attention
    torch._dynamo.reset()
    torch._inductor.config.compile_threads = 1  # one kernel at a time needs no pool of processes
    score, blocks, mask_ms = flex_parts(variant, operands, case.S, case.B, "cuda")
    compiled = torch.compile(flex_attention, dynamic=False)
    sets = [tuple(t.contiguous() for t in s) for s in sets]
    grouped = case.Hq != case.Hk

    def run(q, k, v):
        return compiled(q, k, v, score_mod=score, block_mask=blocks, enable_gqa=grouped)

    run(*sets[0])
    torch.cuda.synchronize()
    import triton
    return Prepared(*returning(run, sets), dict(source=f"torch {torch.__version__} triton {triton.__version__}",
                                                block_mask_ms=round(mask_ms, 1)))


def load_text(path):
    """The module of a specification: eager PyTorch runs it."""
    space = {"__name__": "specification"}
    with open(path) as f:
        exec(compile(f.read(), path, "exec"), space)
    return space


def eager_function(variant, path, operands):
    """(q, k, v) -> o by the text itself; modifications of FlexAttention by the few lines that stand for it."""
    file, _, names = path.partition(":")
    if not file.endswith(".py"):
        return lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=file == "causal", enable_gqa=True)
    space = load_text(file)
    if not names:
        return lambda q, k, v: space["attention"](q, k, v, **operands, **variant.constants)
    space.update(operands)
    space.update(variant.constants)
    score, _, mask = names.partition("+")
    if not mask and variant.score is None:
        score, mask = "", score

    def run(q, k, v):
        group = q.size(1) // k.size(1)
        k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
        at = lambda n, axis: torch.arange(n, device=q.device).view([-1 if a == axis else 1 for a in range(4)])
        places = [at(n, axis) for axis, n in enumerate((*q.shape[:3], k.size(2)))]
        s = q @ k.transpose(-1, -2) * q.size(-1) ** -0.5
        if score:
            s = space[score](s, *places)
        if mask:
            s = s.masked_fill(~space[mask](*places), -math.inf)
        return torch.softmax(s, -1).to(q.dtype) @ v

    return run


def eager(case, variant, path, operands, sets):
    run = eager_function(variant, path, operands)

    def on_this_device(q, k, v):  # the texts make positions without naming a device
        with torch.device("cuda"), torch.no_grad():
            return run(q, k, v)

    return Prepared(*returning(on_this_device, sets), dict(source=f"torch {torch.__version__}"))


class Prototype:
    """A prototype kernel of another folder: its bench.py builds and launches it."""

    def __init__(self, folder):
        sys.path.insert(0, folder)
        self.module, self.kernels = importlib.import_module("bench"), {}

    def prepare(self, case, variant, operands, sets):
        module, name = self.module, variant.prototype
        if name not in self.kernels:
            try:
                self.kernels[name] = module.Kernel(*module.build(module.VARIANTS[name]))
            except SystemExit as error:  # its way to say that NVRTC failed
                raise Unsupported(str(error))
        prefix = torch.full((case.B,), int(operands.get("prefix", 0)), device="cuda", dtype=torch.int32)
        outs, launches = [], []
        for q, k, v in sets:
            q, k, v = (t.transpose(1, 2) for t in (q, k, v))
            o, lse = torch.full_like(q, math.nan), torch.empty(case.B, case.Hq, case.S, device="cuda")
            launches.append(self.kernels[name].prepare(q, k, v, o, lse, slopes=operands.get("slopes"), prefix=prefix,
                                                       softcap=20.0, window=1024))
            outs.append(o.transpose(1, 2))
        return Prepared(launches, lambda n: outs[n], dict(source=hashlib.sha256(module.SOURCE.encode()).hexdigest()[:16]))


class Mosaic:
    """JAX's attention in a process of its own; mosaic.py is the other end of the pipe. It starts, and compiles what there is
    time for, while others do the like; hello() waits for that."""

    def __init__(self, cases=(), seconds=0.0, out=None):
        read, self.write = os.pipe()
        self.read, write = os.pipe()
        environment = dict(os.environ, XLA_PYTHON_CLIENT_PREALLOCATE="false")
        self.process = subprocess.Popen([sys.executable, os.path.join(HERE, "mosaic.py"), str(read), str(write)],
                                        pass_fds=(read, write), env=environment, stdout=subprocess.DEVNULL, stderr=out)
        os.close(read), os.close(write)
        self.pending, self.seconds = b"", seconds
        self.send(op="hello")
        self.send(op="ahead", cases=[c.fields() for c in cases], seconds=seconds)

    def hello(self):
        self.note = self.receive(60)
        return self.receive(60 + self.seconds)

    def ask(self, patience=60, **command):
        self.send(**command)
        return self.receive(patience)

    def send(self, **command):
        try:
            os.write(self.write, json.dumps(command).encode() + b"\n")
        except OSError:
            raise Unsupported("the JAX process has ended")

    def receive(self, patience):
        end = time.monotonic() + patience
        while b"\n" not in self.pending:
            ready, _, _ = select.select([self.read], [], [], max(0.0, end - time.monotonic()))
            more = os.read(self.read, 65536) if ready else b""
            if not more:
                self.process.kill()
                raise Unsupported("the JAX process gave no answer" if not ready else "the JAX process has ended")
            self.pending += more
        line, _, self.pending = self.pending.partition(b"\n")
        answer = json.loads(line)
        if "error_text" in answer:
            raise Unsupported(answer["error_text"])
        return answer

    def prepare(self, case):
        return self.ask(op="prepare", case=case.fields())

    def block(self, seconds):
        return self.ask(op="block", seconds=seconds)

    def check(self, case, n):
        return self.ask(op="check", case=case.fields(), n=n)["error"]

    def close(self):
        self.process.kill()
        self.process.wait()
        os.close(self.write), os.close(self.read)
