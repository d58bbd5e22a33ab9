// Constants as CUDA text. Private to ir/generic. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <string>

namespace cubridge::ir::generic {

std::string integer_literal(std::int64_t v);
std::string real_literal(double v); ///< of type cb_real; a constant expression unless inf or NaN
std::string float_literal(float v);
std::string literal(Expr constant);

} // namespace cubridge::ir::generic
