// The value of an expression at one position, in float64. The caller says what sizes, loads and arguments are. Slow:
// what is shared is computed at each use. For tests and small references. Private to ir/generic.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <array>
#include <functional>
#include <span>

namespace cubridge::ir::generic {

class PointEvaluator {
public:
    std::function<std::int64_t(int dim)> dim;
    std::function<double(Expr load, std::span<const std::int64_t> at)> load; ///< indices as computed, not clamped
    std::function<double(Expr arg)> arg;
    const ExprPool* pool = nullptr; ///< of constant tables
    std::array<std::int64_t, kMaxIndex> index{};

    double value(Expr e);
    std::int64_t integer(Expr e) { return static_cast<std::int64_t>(value(e)); }

private:
    double sum(Expr e);
    double product(Expr e);
    double reduce(Expr e);
    double cast(Expr e);
    std::array<std::int64_t, kMaxBound + 1> bound_{};
};

double reduced(ReduceOp op, double a, double b);
double reduced_none(ReduceOp op, Type type); ///< of an empty range

} // namespace cubridge::ir::generic
