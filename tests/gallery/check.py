#!/usr/bin/env python3
"""Are the candidates of this gallery what they claim to be? Emits each one's base text, applies its edits, and compiles the
CUDA with NVRTC, or reads the CuIR: a candidate that a verifier turns away for a typing mistake tests nothing.

    tests/gallery/check.py --cubridge build/dev/bindings/cli/cubridge --specs ../shared/specs [--keep DIR] [name...]

Needs no GPU. Exit status 1 where a candidate is not as it should be.
SPDX-License-Identifier: Apache-2.0"""
import argparse
import ast
import concurrent.futures
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading

HERE = pathlib.Path(__file__).resolve().parent
FIELDS = {"what", "specification", "arguments", "text", "edits", "kind", "shows"}
TEXTS = {"cuda": "kernel.cu", "cuir": "variant.py"}
SHOWS = {"text", "program", "compile", "gpu"}
OPTIONS = ["--std=c++17", "--device-as-default-execution-space", "--ptxas-options=-v"]


class Bad(Exception):
    pass


class Nvrtc:
    def __init__(self):
        home = pathlib.Path(os.environ.get("CUDA_PATH", "/usr/local/cuda"))
        names = [home / "lib64" / "libnvrtc.so.13", home / "lib64" / "libnvrtc.so.12", home / "lib64" / "libnvrtc.so"]
        self.library = ctypes.CDLL(str(next((n for n in names if n.exists()), "libnvrtc.so")))

    def compile(self, text, arch):  # -> log; Bad where there is no cubin
        call, program, size = self.library, ctypes.c_void_p(), ctypes.c_size_t()
        call.nvrtcCreateProgram(ctypes.byref(program), text.encode(), b"candidate.cu", 0, None, None)
        options = [o.encode() for o in [f"--gpu-architecture={arch}", *OPTIONS]]
        status = call.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*options))
        call.nvrtcGetProgramLogSize(program, ctypes.byref(size))
        log = ctypes.create_string_buffer(size.value)
        call.nvrtcGetProgramLog(program, log)
        call.nvrtcDestroyProgram(ctypes.byref(program))
        log = log.value.decode(errors="replace")
        if status != 0:
            raise Bad("does not compile: " + next((line for line in log.splitlines() if re.search("error|fatal", line)), log[-300:]))
        return log


def edited(base, edits):
    at = []
    for old, new in edits:
        if base.count(old) != 1:
            raise Bad(f"{base.count(old)} times in the base text: {old!r}")
        if old == new:
            raise Bad(f"an edit that changes nothing: {old!r}")
        at.append((base.index(old), len(old), new))
    at.sort(reverse=True)
    for (later, _, _), (begin, length, _) in zip(at, at[1:]):
        if begin + length > later:
            raise Bad("two edits overlap")
    for begin, length, new in at:
        base = base[:begin] + new + base[begin + length:]
    return base


def seen(log):  # what the assembler says of registers, spills and products; is it more than registers?
    spills = sorted(set(re.findall(r"[1-9]\d* bytes (?:stack frame|spill stores)", log)))
    notes = sorted(set(re.findall(r"\bC75\d\d\b", log)))
    return ", ".join(re.findall(r"Used (\d+ registers)", log) + spills + notes), bool(spills or notes)


class Bases:  # what `cubridge adapt --emit` writes, made once a request
    def __init__(self, cubridge, specs, folder):
        self.cubridge, self.specs, self.folder = cubridge, specs, folder
        self.lock, self.made = threading.Lock(), {}

    def text(self, candidate):
        key = (candidate["specification"], *candidate["arguments"])
        with self.lock:
            if key not in self.made:
                self.made[key] = self.emit(key, self.folder / f"base{len(self.made)}")
        return (self.made[key] / TEXTS[candidate["text"]]).read_text()

    def emit(self, key, to):
        where = key[0] if not key[0].endswith(".py") else str(self.specs / key[0])
        command = [self.cubridge, "adapt", where, *key[1:], "--cache", "", "--quiet", "--emit", str(to)]
        run = subprocess.run(command, capture_output=True, text=True)
        if run.returncode != 0:
            raise Bad(f"no base: {' '.join(command)}: {run.stdout}{run.stderr}")
        return to


def check(name, bases, nvrtc, keep):
    candidate = json.loads((HERE / name / "candidate.json").read_text())
    if set(candidate) != FIELDS:
        raise Bad(f"fields: {sorted(set(candidate) ^ FIELDS)}")
    if candidate["text"] not in TEXTS or candidate["shows"] not in SHOWS or not candidate["edits"]:
        raise Bad("text, shows or edits")
    text = edited(bases.text(candidate), candidate["edits"])
    kept = keep / f"{name}{pathlib.Path(TEXTS[candidate['text']]).suffix}"
    kept.write_text(text)
    if candidate["text"] == "cuda":
        arguments = candidate["arguments"]
        try:
            notes, trouble = seen(nvrtc.compile(text, arguments[arguments.index("--arch") + 1]))
        except Bad as error:
            if candidate["shows"] != "text":
                raise
            return str(error)
        if trouble and candidate["shows"] in ("gpu", "program"):
            raise Bad("the assembler's log gives it away: " + notes)
        return "compiles, " + notes
    ast.parse(text)
    run = subprocess.run([bases.cubridge, "lower", str(kept)], capture_output=True, text=True)
    if run.returncode == 0:
        return "parses, and can be printed"
    if candidate["shows"] == "gpu":
        raise Bad("cannot be printed as CUDA: " + run.stderr.strip())
    return "parses; not printed: " + next((line for line in run.stderr.splitlines() if "error" in line), "?").split(": ", 2)[-1]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--cubridge", default=str(HERE.parents[1] / "build/dev/bindings/cli/cubridge"))
    parser.add_argument("--specs", type=pathlib.Path, default=HERE.parents[2] / "shared/specs")
    parser.add_argument("--keep", type=pathlib.Path, help="leave the edited texts in this folder")
    parser.add_argument("names", nargs="*")
    given = parser.parse_args()
    names = given.names or sorted(p.parent.name for p in HERE.glob("*/candidate.json"))
    bad = 0
    with tempfile.TemporaryDirectory() as scratch:
        keep = given.keep or pathlib.Path(scratch)
        keep.mkdir(parents=True, exist_ok=True)
        bases, nvrtc = Bases(given.cubridge, given.specs, pathlib.Path(scratch)), Nvrtc()

        def one(name):
            try:
                return name, True, check(name, bases, nvrtc, keep)
            except (Bad, OSError, SyntaxError, ValueError, KeyError) as error:
                return name, False, f"{type(error).__name__}: {error}"

        with concurrent.futures.ThreadPoolExecutor(2) as threads:
            for name, fine, what in threads.map(one, names):
                bad += not fine
                print(f"{'ok ' if fine else 'BAD'} {name:36} {what}", flush=True)
    print(f"{len(names)} candidates, {bad} not as they should be")
    return 1 if bad or not names else 0


if __name__ == "__main__":
    sys.exit(main())
