// Closed-form key ranges of a mask. Private to ir/mask. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/mask/mask.h"

namespace cubridge::ir::mask {

/// Analysis::ranges of `keep`; empty where the mask has no closed form. `keys` is the extent of j.
std::vector<Analysis::Range> closed_form(ExprPool& pool, Expr keep, Expr keys);

} // namespace cubridge::ir::mask
