// The rows of a store, checked; with --gpu their kernels run again. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "bindings/cli/machine.h"
#include <optional>

namespace cubridge::cli {

/// Of one id, or all. An exit status.
int verify_rows(const Options& options, const std::optional<cache::Digest>& id, Machine& machine, const Terminal& out,
                const Terminal& progress);

} // namespace cubridge::cli
