// The numbers of a case. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/check/case.h"

namespace cubridge::runtime {

/// All inputs at the sizes that lie in memory, in the order of the specification's inputs: q [B, Hq, Sq, D], k and v of
/// Sk rows, operands as large as the longest request needs. Values are what the request's dtypes can hold. Nothing
/// stands for an input that is absent, static, or bound and held. Deterministic for a seed and a case.
std::vector<ir::Argument> draw_inputs(const ir::Specification& specification, const Unit& unit, const Case& c,
                                      std::uint64_t seed);

} // namespace cubridge::runtime
