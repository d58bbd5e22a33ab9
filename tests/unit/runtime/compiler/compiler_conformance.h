// What holds for every Compiler that can compile. Each implementation's test runs the whole of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"

namespace cubridge::runtime {

/// Fails the running test where `compiler` breaks the contract of Compiler.
void conforms(Compiler& compiler);

} // namespace cubridge::runtime
