// Which Int expressions can be proved never to be negative. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"

namespace cubridge::ir::mask {

/// True: `e`, Int over b, h, i, j and the variables of a tile, is >= 0 for every tile and all data. Sizes are >= 0,
/// i0 < i1, j0 < j1. False says nothing. New nodes go into the pool.
bool never_negative(ExprPool& pool, Expr e);

} // namespace cubridge::ir::mask
