// The gates on either side of a compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/compiler.h"
#include <functional>

namespace cubridge::runtime::gates {

/// What `compile` gives; of a foreign job only if its text passes before and its cubin after. Its options may define no
/// macro: the text was read without.
Outcome<CompileResult> guarded(const CompileJob& job, const std::function<Outcome<CompileResult>()>& compile);

} // namespace cubridge::runtime::gates
