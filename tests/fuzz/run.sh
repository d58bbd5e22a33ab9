#!/usr/bin/env bash
# usage: tests/fuzz/run.sh BUILD SECONDS [OUT]
# Runs every fuzz program for so long, seeded by the corpus. What it finds is written to OUT, by default BUILD/findings.
# SPDX-License-Identifier: Apache-2.0
set -eu
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
build=$1 seconds=$2 out=${3:-$1/findings}
corpus=$here/../corpus
mkdir -p "$out" "$build/corpus/syntax" "$build/corpus/specification"
common=(-max_len=4096 -timeout=10 -rss_limit_mb=2048 -max_total_time="$seconds" -print_final_stats=1 -artifact_prefix="$out/")
"$build/tests/fuzz/fuzz_syntax" "${common[@]}" "$build/corpus/syntax" "$corpus/syntax" "$corpus/bad"
"$build/tests/fuzz/fuzz_specification" "${common[@]}" -dict="$here/specification.dict" \
    "$build/corpus/specification" "$here/findings" "$corpus/respell" "$corpus/near" "$corpus/bad"
