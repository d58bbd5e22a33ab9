#!/usr/bin/env bash
# From nothing to kernels: sets up, builds, adapts a specification for two architectures, shows the stages and their
# times, and, with a GPU, runs the kernel and compares it. Argument: another specification (samples/prefix_lm.py).
# SPDX-License-Identifier: Apache-2.0
set -eu
here=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
specification=${1:-samples/prefix_lm.py}
# A path that the caller gave is meant from where they stand.
if [ $# -gt 0 ] && [ -e "$here/${1%%:*}" ]; then specification=$here/$1; fi

.ci/setup --build-only
export CUBRIDGE_CUDA_WHEELS=${CUBRIDGE_CUDA_WHEELS:-$PWD/build/cuda-wheels}
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
echo "building ..."
cmake --preset release "${launcher[@]}" >/dev/null
cmake --build --preset release --target cubridge_cli >build/quickstart.log || { tail -n 40 build/quickstart.log && exit 1; }
cubridge=build/release/bindings/cli/cubridge

for arch in sm_90a sm_80; do "$cubridge" adapt "$specification" --arch "$arch"; done
if command -v nvidia-smi >/dev/null && nvidia-smi -L 2>/dev/null | grep -q '^GPU'; then
    "$cubridge" check "$specification" --gpu
else
    echo "Not done for want of a GPU: running the kernels and comparing them with the float64 reference (cubridge check --gpu)."
fi
