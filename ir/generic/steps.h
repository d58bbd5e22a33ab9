// Ordered steps: what a kernel computes, each value once at its own rate. Private to ir/generic.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/generic/prepare.h"
#include <array>
#include <unordered_map>

namespace cubridge::ir::generic {

/// Loads (and, where there is no parameter, Args) of input kStep + k read step k.
constexpr int kStep = 1000;
constexpr int kFirstParameter = 4; ///< Index(0..3) are request, head, row, column; a step's parameters follow

/// A reduction, or an elementwise value worth keeping: a table over the request, the head and its parameters
/// Index(4), Index(5), ... Of a reduction, `body` is reduced over Index(variable), 0 <= value < `extent`.
struct Step {
    bool per_row = false; ///< else computed once, by prologue entry `level` (from 1)
    int level = 0;
    bool reduces = false;
    ReduceOp op = ReduceOp::Sum;
    int variable = 0;
    Expr extent = nullptr;
    Expr body = nullptr;
    Type type = Type::Real;
    bool over_request = false, over_head = false; ///< axes of a table of the prologue; a row has its own b, h
    std::int64_t head_divisor = 1;                ///< the table's head axis, Index(1) in `body`, is head / divisor
    std::vector<Expr> extents;                    ///< of the parameters, over Dims
    std::vector<launch::Code> sizes;              ///< largest extents in a launch; the table's strides
};

struct Program {
    Prepared prepared;
    std::vector<Step> steps; ///< each after those that it reads
    Expr out = nullptr, lse = nullptr, empty = nullptr;
    int levels = 0;                   ///< prologue entries
    std::uint64_t rate(Expr e) const; ///< of Index bits; requests' lengths and operands count as Index(0)

private:
    mutable std::unordered_map<Expr, std::uint64_t> rates_;
};

/// Failure: "unsupported", "limit".
Program plan_steps(Prepared prepared);

} // namespace cubridge::ir::generic
