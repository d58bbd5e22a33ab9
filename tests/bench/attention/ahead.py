"""FlexAttention's kernels are compiled before anything is timed, by processes beside: they fill Inductor's and Triton's caches on
disk, in which the harness finds them. What fails here is compiled, and said, when its case comes.

SPDX-License-Identifier: Apache-2.0"""
import multiprocessing, os, sys, time


def compile_flex(case):
    import peers
    from measure import inputs
    from variants import VARIANTS
    variant = VARIANTS[case.variant]
    peers.flex(case, variant, variant.operands(case.S, case.B, case.Hq, "cuda"), inputs(case, 1))


def worker(cases_, taken, work):
    import torch
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1), os.dup2(quiet, 2)
    if work is compile_flex and torch.cuda._is_in_bad_fork():  # the GPU was touched before the fork
        return
    while True:
        with taken.get_lock():
            n, taken.value = taken.value, taken.value + 1
        if n >= len(cases_):
            return
        try:
            work(cases_[n])
        except Exception:
            continue


class Ahead:
    """Forked before the harness touches the GPU, so that PyTorch is imported once."""

    def __init__(self, cases_, processes, work=compile_flex):
        self.processes = []
        if not cases_ or processes < 1:
            return
        import torch, torch._dynamo, torch.nn.attention.flex_attention
        sys.stdout.flush(), sys.stderr.flush()
        context = multiprocessing.get_context("fork")
        taken = context.Value("i", 0)
        self.processes = [context.Process(target=worker, args=(list(cases_), taken, work), daemon=True)
                          for _ in range(min(processes, len(cases_)))]
        for one in self.processes:
            one.start()

    def wait(self, seconds):
        """How many ended by themselves; the others are stopped, as nothing may run beside what is timed."""
        end, done = time.monotonic() + seconds, 0
        for one in self.processes:
            one.join(max(0.0, end - time.monotonic()))
            done += one.exitcode == 0
        for one in self.processes:
            if one.is_alive():
                one.kill()
            one.join()
        return done
