#!/usr/bin/env bash
# usage: tests/fuzz/run.sh BUILD SECONDS [OUT]
# Runs the fuzz programs of a build for so long, one process each, all at once, seeded by the corpus. What they find goes
# to OUT (BUILD/findings), what they learn to BUILD/corpus, what they say to OUT/<program>.log. The last lines are each
# program's executions; exit status 1 if one did not end clean.
# SPDX-License-Identifier: Apache-2.0
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
if [ $# -lt 2 ]; then sed -n 2p "$0" && exit 2; fi
build=$1 seconds=$2 out=${3:-$1/findings}
corpus=$here/../corpus

seeds() { # <program>
    case $1 in
    fuzz_syntax) echo "$corpus/syntax" "$corpus/bad" ;;
    fuzz_gates) echo "$here/../../ir/experts" ;;
    *) echo "$here/findings" "$corpus/respell" "$corpus/near" "$corpus/bad" ;;
    esac
}

mkdir -p "$out"
names=() pids=() status=0
for source in "$here"/fuzz_*.cpp; do
    name=$(basename "$source" .cpp)
    mkdir -p "$build/corpus/$name"
    dict=$here/${name#fuzz_}.dict
    [ -f "$dict" ] || dict=$here/specification.dict
    # shellcheck disable=SC2046 # a list of folders
    "$build/tests/fuzz/$name" -max_total_time="$seconds" -max_len=4096 -timeout=60 -rss_limit_mb=3000 -print_final_stats=1 \
        -dict="$dict" -artifact_prefix="$out/" "$build/corpus/$name" $(seeds "$name") >"$out/$name.log" 2>&1 &
    names+=("$name") pids+=($!)
done
for k in "${!pids[@]}"; do
    if wait "${pids[k]}"; then clean=clean; else clean="NOT CLEAN" status=1; fi
    executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$out/${names[k]}.log")
    if [ "$clean" != clean ]; then tail -n 40 "$out/${names[k]}.log"; fi
    echo "${names[k]}: $clean, ${executions:-0} executions"
done
exit $status
