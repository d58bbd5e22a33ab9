#!/usr/bin/env bash
# Builds the GPU programs into a folder that runs on any x86-64 Linux with a GPU, and runs them there.
#   tests/gpu/run.sh build               make build/gpu/
#   tests/gpu/run.sh check [--specs DIR] [program...]
#                                        run build/gpu/gpu_* (or only those named), then `cubridge check --gpu` for every
#                                        option set of tests/corpus/options.json whose file is in DIR (../shared/specs),
#                                        then some of it under compute-sanitizer; nothing is built. `cubridge` as a
#                                        program means the specifications
#   tests/gpu/run.sh                     build, then check if there is a GPU
# The records of a run go to $OUT if it is set, else to tests/gpu/results/: <gpu>.json of the programs, <gpu>-check.json of
# the specifications. CUBRIDGE_CHECK_TIMEOUT: seconds a program may take (300); CUBRIDGE_CHECK_JOBS: checks at a time
# (4). Exit status: 0 all passed, 1 something
# failed, 2 usage, 77 no GPU here.
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

# options.json as lines: specification, name of the option set, its arguments; separated by tabs.
option_sets() {
    python3 - "$root/tests/corpus/options.json" <<'END'
import json, sys
for specification, sets in json.load(open(sys.argv[1])).items():
    for one in sets:
        print(specification, one["name"], *one["args"], sep="\t")
END
}

build() {
    local program name path
    mkdir -p "$root/build"
    # $ORIGIN: in the packed folder libraries lie beside what needs them, also for a process that loads libcubridge.so.
    # shellcheck disable=SC2016
    cmake -S "$root" -B "$tree" -G Ninja -DCMAKE_BUILD_TYPE=RelWithDebInfo -DCUBRIDGE_DEVELOPER=ON '-DCMAKE_BUILD_RPATH=$ORIGIN' \
        -DCMAKE_EXE_LINKER_FLAGS=-Wl,--disable-new-dtags -DCMAKE_SHARED_LINKER_FLAGS=-Wl,--disable-new-dtags >"$tree.log" 2>&1 ||
        { cat "$tree.log" >&2 && quit 1 "configuring failed"; }
    cmake --build "$tree" --target gpu_programs cubridge_cli cubridge
    rm -rf "$folder"
    mkdir -p "$folder"
    for program in "$tree"/gpu/gpu_*; do
        strip -o "$folder/${program##*/}" "$program"
    done
    strip -o "$folder/cubridge" "$tree/bindings/cli/cubridge"
    strip -o "$folder/libcubridge.so" "$tree/bindings/c/libcubridge.so" # tests/bench/run.sh loads it
    option_sets >"$folder/option-sets"
    # ldd follows the libraries' own needs too, so one round is enough.
    for program in "$folder"/gpu_* "$folder/cubridge" "$folder/libcubridge.so"; do
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

slug() {
    local text
    text=$(printf '%s' "${gpu:-gpu}" | tr '[:upper:]' '[:lower:]' | tr -cs 'a-z0-9' '-')
    printf '%s' "${text%-}"
}

# One check of one option set; writes one line for the record and one as for a program's check.
specification() { # <number> <folder of specifications> <dtype> <specification> <name> [arguments]
    local at=$scratch/$1 specs=$2 dtype=$3 specification=$4 name=$5 status=0 line verdict=failed
    shift 5
    line=$(LD_LIBRARY_PATH="$folder" timeout --kill-after=10 "${CUBRIDGE_CHECK_TIMEOUT:-300}" "$folder/cubridge" check \
        "$specs/$specification" --gpu --json --quiet --cache '' --dtype "$dtype" "$@" 2>"$at.err") || status=$?
    if [ "$status" = 0 ]; then verdict=passed; fi
    if [ -z "$line" ]; then line="{\"failures\": [$(quoted "ended with status $status: $(tail -n 3 "$at.err")")]}"; fi
    printf '    { "specification": %s, "option_set": %s, "dtype": "%s", "status": %s, "result": %s }\n' \
        "$(quoted "$specification")" "$(quoted "$name")" "$dtype" "$status" "$line" >"$at.line"
    printf 'cubridge\t%s\t0\t%s (%s, %s)\n' "$verdict" "$specification" "$name" "$dtype" >"$at.row"
    say "$verdict  $specification ($name, $dtype)$([ "$status" = 0 ] || printf ': status %s, %s' "$status" "$line")"
}

# Every option set in the type that serving uses, the first of each file in the others too and with long lengths.
specifications() { # <folder of specifications>
    local specs=$1 begin dtype rows=0 args previous='' more
    scratch=$(mktemp -d)
    begin=$(date +%s)
    while IFS=$'\t' read -r -a args; do
        [ -f "$specs/${args[0]%%:*}" ] || continue
        for dtype in bf16 fp16 fp32; do
            more=()
            if [ "${args[0]}" = "$previous" ]; then
                if [ "$dtype" != bf16 ]; then continue; fi
            elif [ "$dtype" = bf16 ]; then
                more=(--long)
            fi
            while [ "$(jobs -rp | wc -l)" -ge "${CUBRIDGE_CHECK_JOBS:-4}" ]; do wait -n || true; done
            rows=$((rows + 1))
            specification "$(printf '%04d' "$rows")" "$specs" "$dtype" "${args[@]}" "${more[@]}" &
        done
        previous=${args[0]}
    done <"$folder/option-sets"
    wait
    cat "$scratch"/*.row >>"$all"
    mkdir -p "$results"
    {
        printf '{\n  "date": %s,\n' "$(quoted "$(date -u +%Y-%m-%dT%H:%M:%SZ)")"
        printf '  "gpu": %s,\n  "driver": %s,\n' "$(quoted "$gpu")" "$(quoted "$(gpu_driver || true)")"
        printf '  "commit": %s,\n  "seconds": %s,\n' "$(quoted "$(cat "$folder/commit" 2>/dev/null || say unknown)")" "$(($(date +%s) - begin))"
        printf '  "sanitizers": %s,\n  "rows": [\n' "$(quoted "$(sanitizers "$specs")")"
        cat "$scratch"/*.line | paste -sd, | sed 's/ },    { "spec/ },\n    { "spec/g'
        printf '  ]\n}\n'
    } >"$results/$(slug)-check.json"
    rm -rf "$scratch"
    say "$rows checks of specifications in $(($(date +%s) - begin)) s; record: $results/$(slug)-check.json"
}

# The small cases of every specification under the tools of compute-sanitizer; prints the verdict. A machine without them,
# or a device that they refuse, leaves the question open.
sanitizers() { # <folder of specifications>
    local words=() specification output status=0
    while IFS= read -r specification; do
        if [ -f "$1/${specification%%:*}" ]; then words+=("$1/$specification"); fi
    done < <(cut -f1 "$folder/option-sets" | uniq)
    output=$(LD_LIBRARY_PATH="$folder" timeout --kill-after=10 "$((3 * ${CUBRIDGE_CHECK_TIMEOUT:-300}))" \
        "$folder/cubridge" check --gpu --sanitize --cases 8 --quiet --cache '' "${words[@]}" 2>&1) || status=$?
    output=$(printf '%s' "$output" | head -n 6 | paste -sd' ')
    case $status in
    0) say "passed: ${#words[@]} specifications, $output" && return ;;
    7) say "open: $output" && return ;;
    esac
    printf 'cubridge\tfailed\t0\tcompute-sanitizer\n' >>"$all"
    say "failed (status $status): $output"
}

check() {
    local specs=$root/../shared/specs
    if [ "${1:-}" = --specs ]; then
        [ -d "${2:-}" ] || quit 2 "--specs needs a folder"
        specs=$2
        shift 2
    fi
    local programs=("$@") program name status rows failed passed
    gpu=''
    [ -d "$folder" ] || quit 2 "$folder is missing: run '$0 build' where the compiler is, and bring it here"
    if [ $# = 0 ]; then programs=("$folder"/gpu_* cubridge); fi
    results=${OUT:-$root/tests/gpu/results}
    all=$(mktemp)
    rows=$(mktemp)
    # shellcheck disable=SC2064
    trap "rm -f '$all' '$rows'" EXIT
    for program in "${programs[@]}"; do
        name=${program##*/}
        if [ "$name" = cubridge ]; then continue; fi # below
        [ -x "$folder/$name" ] || quit 2 "there is no program $name in $folder"
        : >"$rows"
        status=0
        say "== $name"
        CUBRIDGE_GALLERY=$root/tests/gallery CUBRIDGE_SPECS=$specs CUBRIDGE_GALLERY_RECORD=$results/gallery-$(slug).json \
            CUBRIDGE_DELAYS_RECORD=$results/delays-$(slug).json \
            CUBRIDGE_COMMIT=$(cat "$folder/commit" 2>/dev/null || say unknown) \
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
    if [ -z "$gpu" ]; then gpu=$(nvidia-smi --query-gpu=name --format=csv,noheader -i 0 2>/dev/null | head -n 1 || true); fi
    if [ ! -s "$all" ] && [ -z "$gpu" ]; then exit 77; fi # every program said that there is no GPU
    mkdir -p "$results"
    if [ -s "$all" ]; then record "$all" "$results/$(slug).json"; fi
    case " ${programs[*]##*/} " in
    *' cubridge '*)
        if [ -d "$specs" ]; then specifications "$specs"; else say "no specifications: there is no folder $specs"; fi
        ;;
    esac
    failed=$(cut -f2 "$all" | grep -cx failed || true)
    passed=$(cut -f2 "$all" | grep -cx passed || true)
    say "summary: $passed passed, $failed failed on ${gpu:-an unnamed GPU}; records: $results"
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
*) quit 2 "usage: $0 [build | check [--specs DIR] [program...]]" ;;
esac
