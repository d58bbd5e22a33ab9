// Expressions at a point: what a rewrite may rely on is tried with numbers. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <functional>

namespace cubridge::ir::transfer {

/// The value where every axis has one element and `value` gives that of each input, by number.
double probe(const ExprPool& pool, Expr e, const std::function<double(int input)>& value);

} // namespace cubridge::ir::transfer
