#!/usr/bin/env bash
# Builds the GPU programs into a folder that runs on any x86-64 Linux with a GPU, and runs them there.
#   tests/gpu/run.sh build               make build/gpu/
#   tests/gpu/run.sh check [program...]  run build/gpu/gpu_* (or only those named); nothing is built
#   tests/gpu/run.sh                     build, then check if there is a GPU
# The record of a run goes to $OUT if it is set, else to tests/gpu/results/: <gpu>.json. CUBRIDGE_CHECK_TIMEOUT: seconds a
# program may take (300). Exit status: 0 all passed, 1 something failed, 2 usage, 77 no GPU here.
# SPDX-License-Identifier: Apache-2.0
set -eu

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
folder=$root/build/gpu
tree=${CUBRIDGE_GPU_TREE:-$root/build/gpu-tree}

say() { printf '%s\n' "$*"; }
quit() {
    printf 'run.sh: %s\n' "$2" >&2
    exit "$1"
}

# Libraries that come from the target machine: its C library is newer or as new, its driver and NVRTC are what we test.
theirs() {
    case $1 in
    ld-linux* | linux-vdso* | libc.so* | libm.so* | libdl.so* | librt.so* | libpthread.so* | libresolv.so*) return 0 ;;
    libcuda.so* | libnvrtc*) return 0 ;;
    *) return 1 ;;
    esac
}

build() {
    local program name path
    mkdir -p "$root/build"
    cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUBRIDGE_DEVELOPER=ON >"$tree.log" 2>&1 ||
        { cat "$tree.log" >&2 && quit 1 "configuring failed"; }
    cmake --build "$tree" --target gpu_programs
    rm -rf "$folder"
    mkdir -p "$folder"
    for program in "$tree"/gpu/gpu_*; do
        strip -o "$folder/${program##*/}" "$program"
    done
    # ldd follows the libraries' own needs too, so one round is enough.
    for program in "$folder"/gpu_*; do
        ldd "$program" | while read -r name _ path _; do
            if [ "${path:-}" = not ]; then quit 1 "$name is missing here"; fi
            if [ ! -f "${path:-}" ] || theirs "$name" || [ -e "$folder/$name" ]; then continue; fi
            strip -o "$folder/$name" "$path" 2>/dev/null || cp -L "$path" "$folder/$name"
        done
    done
    {
        git -C "$root" rev-parse HEAD 2>/dev/null || say unknown
        git -C "$root" diff --quiet HEAD 2>/dev/null || say changed
    } | paste -sd+ >"$folder/commit"
    say "made $folder: $(du -sh "$folder" | cut -f1), $(find "$folder" -name 'gpu_*' | wc -l) program(s)"
}

# What is needed to be a JSON string.
quoted() {
    local text=${1//\\/\\\\}
    text=${text//\"/\\\"}
    printf '"%s"' "${text//[[:cntrl:]]/ }"
}

gpu_driver() { nvidia-smi --query-gpu=driver_version --format=csv,noheader -i 0 2>/dev/null | head -n 1; }

record() { # <rows file> <record file>
    local verdict ms program name first=1
    {
        printf '{\n  "date": %s,\n' "$(quoted "$(date -u +%Y-%m-%dT%H:%M:%SZ)")"
        printf '  "gpu": %s,\n  "driver": %s,\n' "$(quoted "$gpu")" "$(quoted "$(gpu_driver || true)")"
        printf '  "commit": %s,\n  "checks": [' "$(quoted "$(cat "$folder/commit" 2>/dev/null || say unknown)")"
        while IFS=$'\t' read -r program verdict ms name; do
            if [ "$first" = 0 ]; then printf ','; fi
            first=0
            printf '\n    { "program": %s, "check": %s, "verdict": %s, "ms": %s }' \
                "$(quoted "$program")" "$(quoted "$name")" "$(quoted "$verdict")" "$ms"
        done <"$1"
        printf '\n  ]\n}\n'
    } >"$2"
}

check() {
    local programs=("$@") program name status rows all results slug failed passed
    gpu=''
    [ -d "$folder" ] || quit 2 "$folder is missing: run '$0 build' where the compiler is, and bring it here"
    if [ $# = 0 ]; then programs=("$folder"/gpu_*); fi
    all=$(mktemp)
    rows=$(mktemp)
    # shellcheck disable=SC2064
    trap "rm -f '$all' '$rows'" EXIT
    for program in "${programs[@]}"; do
        name=${program##*/}
        [ -x "$folder/$name" ] || quit 2 "there is no program $name in $folder"
        : >"$rows"
        status=0
        say "== $name"
        CUBRIDGE_CHECK_ROWS=$rows timeout --kill-after=10 "${CUBRIDGE_CHECK_TIMEOUT:-300}" "$folder/$name" || status=$?
        if [ "$status" = 77 ]; then continue; fi
        if [ -z "$gpu" ]; then gpu=$(sed -n 's/^gpu\t0\t//p' "$rows" | head -n 1); fi
        sed "/^gpu\t/d; s/^/$name\t/" "$rows" >>"$all"
        # A program that died or hung gets a row of its own: its checks so far may all have passed.
        case $status in
        0) if ! grep -q '^passed' "$rows"; then printf '%s\tfailed\t0\tchecked nothing\n' "$name" >>"$all"; fi ;;
        124 | 137) printf '%s\tfailed\t0\tended by the watchdog\n' "$name" >>"$all" ;;
        *) if ! grep -q '^failed' "$rows"; then printf '%s\tfailed\t0\tended with status %s\n' "$name" "$status" >>"$all"; fi ;;
        esac
    done
    if [ ! -s "$all" ]; then exit 77; fi # every program said that there is no GPU
    results=${OUT:-$root/tests/gpu/results}
    mkdir -p "$results"
    slug=$(printf '%s' "${gpu:-gpu}" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9' '-')
    record "$all" "$results/${slug%-}.json"
    failed=$(cut -f2 "$all" | grep -cx failed || true)
    passed=$(cut -f2 "$all" | grep -cx passed || true)
    say "summary: $passed passed, $failed failed on ${gpu:-an unnamed GPU}; record: $results/${slug%-}.json"
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

case ${1:-} in
build) build ;;
check)
    shift
    check "$@"
    ;;
'')
    build
    check
    ;;
*) quit 2 "usage: $0 [build | check [program...]]" ;;
esac
