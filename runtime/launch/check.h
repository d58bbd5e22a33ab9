// What can be judged of a launch on the host, before anything is enqueued. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/launch.h"
#include "cubridge/ir/specification.h"
#include "cubridge/runtime/launch.h"

namespace cubridge::runtime {

/// Everything but the workspace: pointers, strides and their alignment, sizes of operands against the plan's least
/// sizes, conditions, fields of other layouts. `plan` is the specification's own; its operands that are not bound are
/// those of `args`, in order. `sizes` has the launch's sizes, operands as in `plan`.
Verdict check_launch(const ir::launch::Plan& plan, const ir::Request& request, const LaunchArgs& args,
                     const ir::launch::Sizes& sizes);

/// The counts of a launch, without operands. Misuse where they are none.
Verdict check_counts(const ir::Request& request, const LaunchArgs& args);
ir::launch::Sizes sizes_of(const ir::Request& request, const LaunchArgs& args, int multiprocessors);

} // namespace cubridge::runtime
