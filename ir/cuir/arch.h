// Inside the room: what an architecture has of the language. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/code.h"

namespace cubridge::ir::cuir {

/// Findings of kind "static": an arch= that is none, and statements that are sm_90a's in a program of sm_80.
std::vector<Finding> arch_check(const KernelCode& kernel);

} // namespace cubridge::ir::cuir
