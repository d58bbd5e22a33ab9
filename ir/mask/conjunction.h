// A mask as a union of intervals of keys: its disjunctive normal form, each atom solved for j. Private to ir/mask.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <optional>
#include <vector>

namespace cubridge::ir::mask {

/// Row i keeps keys j with j >= each of `lower`, j < each of `upper`, if each of `rows` is true of the row.
struct Conjunction {
    std::vector<Expr> lower, upper; ///< Int over b, h, i
    std::vector<Expr> rows;         ///< Bool over b, h, i
    bool sparse = false;            ///< of these only some, spread evenly (a congruence with a small modulus)
};

/// Nothing: some atom can't be solved for j, or there are too many conjunctions. No conjunction at all: nothing is
/// kept.
std::optional<std::vector<Conjunction>> conjunctions(ExprPool& pool, Expr keep);

} // namespace cubridge::ir::mask
