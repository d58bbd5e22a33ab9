// From what a program needs to the launch plan: integer expressions over launch sizes.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/launch.h"
#include "ir/lower/lower.h"

namespace cubridge::ir::lower {

/// Sets entries, tensor maps, ticket and workspace of `plan`, and the alignment of operands that are copied; its
/// operands give the numbers of `x0`, `x1`, ... Where kernels, tables or tensors have heads of another number than q or
/// k, no first one of a shard is known: `head_begin == 0` is added to the conditions. Errors: "no_rule" for an extent
/// that is no expression over launch sizes, "limit" for more entries than a launch has.
std::optional<Error> fill_plan(launch::Plan& plan, const Shape& shape, const cuir::Program& program);

} // namespace cubridge::ir::lower
