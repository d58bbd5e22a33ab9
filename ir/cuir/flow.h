// Facts through the roles and defs of a kernel. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/code.h"

namespace cubridge::ir::cuir {

/// Findings about bases, masks, statistics and votes. Never rejects for what it does not know.
std::vector<Finding> follow(const Code& code, const KernelCode& kernel);

} // namespace cubridge::ir::cuir
