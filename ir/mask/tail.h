// What a function of the distance j - i is from some distance on. Private to ir/mask. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <optional>

namespace cubridge::ir::mask {

/// For all u >= from the function is `value`, neither of which has u in it; from null: for all u.
struct Tail {
    Expr from = nullptr, value = nullptr;
};

/// Of a function of u, Index(variable). Nothing: it does not settle, or no rule sees where. float32 arithmetic that
/// grows with u (T5's logarithm) is solved for u, with room for its rounding.
std::optional<Tail> tail(ExprPool& pool, Expr e, int variable);

} // namespace cubridge::ir::mask
