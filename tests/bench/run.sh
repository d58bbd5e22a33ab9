#!/usr/bin/env bash
# Times attention on the GPU that is here, ours and what people would use instead, in one run of at most 8 minutes.
#   tests/bench/run.sh SHARD [options]     one shard; `--plan` prints what it would do, `--help` lists the options
#   tests/bench/run.sh list                the shards with their plans
#   tests/bench/run.sh merge FILE...       records of runs into the latest one of their GPU
#   tests/bench/run.sh stale [options]     rows whose kernel has another text by now (no GPU; --specs, --library)
#   tests/bench/run.sh report              tables and plots of docs/performance.md (needs matplotlib)
# Needs build/gpu (tests/gpu/run.sh build, where the compiler is) and Python with PyTorch; both, and the specifications, may
# have been brought here: tests/bench/run.sh variants-4k --specs build/specs --library build/gpu
# The record of a run goes to $OUT/SHARD.json if OUT is set (merge it afterwards), else straight into
# tests/bench/results/<gpu>/latest.json. --resume leaves out what is there. Exit status: 0 done, 1 something was wrong or
# failed, 2 usage, 3 out of time (go on with --resume), 77 no GPU here.
# SPDX-License-Identifier: Apache-2.0
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
code=$root/tests/bench/attention
results=$root/tests/bench/results

commit() {
    cat "$root/build/gpu/commit" 2>/dev/null || git -C "$root" rev-parse HEAD 2>/dev/null || echo unknown
}

# "NVIDIA H200" -> h200
slug() { printf '%s' "${1#NVIDIA }" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9' '-'; }

gpu() { nvidia-smi --query-gpu=name --format=csv,noheader -i 0 2>/dev/null | head -n 1 || true; }

shard() { # <shard> [options]
    local folder name out
    name=$(gpu)
    folder=$results/$(slug "${name:-gpu}")
    if [ -n "${OUT:-}" ]; then out=$OUT/$1.json; else out=$(mktemp -d)/$1.json; fi
    local status=0 lost='' rest seconds
    set -- "$@" --commit "$(commit)" --out "$out" --latest "$folder/latest.json"
    PYTHONUNBUFFERED=1 python3 "$code/measure.py" "$@" || status=$?
    while [ "$status" = 75 ]; do # a case lost the GPU: the others go on in a new process
        status=0 lost=1
        read -r rest seconds <"$out.rest" && rm -f "$out.rest"
        [ "$rest" != - ] || break
        PYTHONUNBUFFERED=1 python3 "$code/measure.py" "$@" --numbers "$rest" --seconds "$seconds" || status=$?
    done
    [ -z "$lost" ] || [ "$status" != 0 ] || status=1
    if [ -z "${OUT:-}" ] && [ -s "$out" ]; then python3 "$code/report.py" merge "$results" "$out"; fi
    return "$status"
}

case ${1:-} in
list) for one in $(python3 -c "import sys; sys.path.insert(0, '$code'); import cases; print(*cases.SHARDS)"); do
    python3 "$code/measure.py" "$one" --plan
done ;;
merge)
    shift
    [ $# -gt 0 ] || { echo "usage: $0 merge FILE..." >&2 && exit 2; }
    python3 "$code/report.py" merge "$results" "$@"
    ;;
stale)
    shift
    python3 "$code/report.py" stale "$results" "$@"
    ;;
report) python3 "$code/report.py" report "$results" "$root/docs" ;;
'' | -*)
    sed -n '3,7s/^# *//p' "$0" >&2
    exit 2
    ;;
*) shard "$@" ;;
esac
