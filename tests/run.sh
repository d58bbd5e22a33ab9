#!/usr/bin/env bash
# Sets up, makes one build and passes all tests that need no GPU. Arguments go to ctest.
# SPDX-License-Identifier: Apache-2.0
set -eu
cd "$(dirname "${BASH_SOURCE[0]}")/.."
.ci/setup
# NVRTC from the wheels, where that is the one there is.
export CUBRIDGE_CUDA_WHEELS=${CUBRIDGE_CUDA_WHEELS:-$PWD/build/cuda-wheels}
launcher=()
if command -v ccache >/dev/null; then launcher=(-DCMAKE_CXX_COMPILER_LAUNCHER=ccache -DCMAKE_C_COMPILER_LAUNCHER=ccache); fi
cmake --preset dev "${launcher[@]}"
cmake --build --preset dev
ctest --preset dev -j "$(nproc)" "$@"
