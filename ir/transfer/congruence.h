// Congruences that a mask implies between the positions of queries and keys. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <vector>

namespace cubridge::ir::transfer {

/// A mask implies j = slope * i + shift modulo `step`.
struct Congruence {
    std::int64_t step, slope;
    Expr shift;             ///< Int over b, h
    std::vector<Expr> says; ///< atoms of keep that say just that
};

/// Those with a number from 2 to 64 that a Bool over b, h, i, j implies.
std::vector<Congruence> congruences(ExprPool& pool, Expr keep);

/// `step * a + rest <= 0` as `a <= (-rest) // step`, where `a` holds all of j: what is left for an element is one
/// comparison.
Expr divided(ExprPool& pool, Expr keep, std::int64_t step);

} // namespace cubridge::ir::transfer
