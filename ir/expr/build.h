// What the constructors of expressions share. Private to ir/expr. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"

namespace cubridge::ir {

struct IntSum {
    std::int64_t constant = 0;
    std::vector<std::pair<std::int64_t, Expr>> terms;
};
IntSum as_sum(Expr e); ///< of an Int expression

namespace detail {

Expr int_mul(ExprPool& p, Expr a, Expr b);
Expr int_floor_div(ExprPool& p, Expr a, Expr b);
Expr int_mod(ExprPool& p, Expr a, Expr b);
Expr int_compare(ExprPool& p, Op op, Expr e); ///< Le or Eq against 0
Expr divide_exactly(ExprPool& p, Expr e, Expr by);
bool is_dim(Expr e, int number);
bool is_group(Expr e);

// Interning without normalisation.
Expr build(ExprPool& p, Kind kind, Expr a, Expr b);
Expr build_compare(ExprPool& p, Op op, Expr a, Expr b); ///< b null: against 0
Expr build_fn(ExprPool& p, Kind fn, Op op, std::span<const Expr> x);

Expr compare(ExprPool& p, Op op, Expr a, Expr b); ///< any type, all six operators
Expr int_pow(ExprPool& p, Expr a, Expr b);
Expr real_pow(ExprPool& p, Expr a, Expr b);
Expr real_fn(ExprPool& p, Op op, Expr x);

} // namespace detail
} // namespace cubridge::ir
