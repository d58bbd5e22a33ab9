// Inside the room: integer literals of a kernel's body. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/execute.h"

namespace cubridge::ir::cuir {

/// A finding for each integer other than -1, 0, 1, 2 that stands in a statement; roles and channels have theirs.
void literals(const std::vector<Statement>& block, std::vector<Finding>& out);

} // namespace cubridge::ir::cuir
