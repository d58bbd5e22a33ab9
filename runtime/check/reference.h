// What a launch must give: the specification evaluated for each request at its own lengths.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/check/case.h"
#include <functional>

namespace cubridge::runtime {

/// o [B, heads, Sq, Dv]; lse [B, heads, Sq] or without elements.
struct Outputs {
    ir::Array o, lse;
};

/// Evaluates a text on arrays: Specification::evaluate or evaluate_scalar.
using Evaluate = std::function<ir::Result<std::vector<ir::Array>>(const std::vector<ir::Argument>&)>;

/// `inputs` as draw_inputs() gives them. Rows that don't exist (rows are the tail, and there are fewer keys) give 0 and
/// -inf; so do rows of NaN where the request wants empty rows to be zero. An LSE is natural, as the text has it.
ir::Result<Outputs> reference(const ir::Specification& specification, const Unit& unit, const Case& c,
                              const std::vector<ir::Argument>& inputs, const Evaluate& evaluate);

} // namespace cubridge::runtime
