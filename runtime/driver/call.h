// One driver call in one line: an Outcome from a CUresult, inside the right context.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/driver/context.h"
#include "runtime/driver/errors.h"

namespace cubridge::runtime {

/// Runs `call` with the context current. `name` goes into the Fault.
template <class Call> Outcome<void> within(const Context& context, const char* name, Call call) {
    const ScopedContext scope(context);
    if (!scope.state()) return scope.state().fault();
    if (const CUresult code = call(context.cuda()); code != CUDA_SUCCESS) return driver_fault(code, name);
    return {};
}

} // namespace cubridge::runtime
