// The rules, one a file, in the order in which they are applied to the kernel of a part. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/transfer/work.h"

namespace cubridge::ir::transfer {

void check_request(const Launch& launch); ///< refuses what no kernel of this expert can be
void shape(Work& work);                   ///< head dims, element type, tile sizes
void order(Work& work);                   ///< of work items
void inputs(Work& work);                  ///< which heads, tensors and rows of q, k, v are loaded
void mask_statement(Work& work);          ///< which scores are dropped
void key_ranges(Work& work);              ///< which key tiles are visited
void score(Work& work);                   ///< what is made of a score
void weights(Work& work);                 ///< sinks, pointwise weights, ratios, gains
void output(Work& work);                  ///< empty rows, what is made of the weighted sum, LSE
void destination(Work& work);             ///< where the output is stored, and from what
/// What a mask's statement keeps and a key range leaves out is bounded by: keep implies j < it. Null: nothing simpler
/// than a row decides.
Expr length_of(Work& work);
/// The kernel that makes the output of several parts.
void combine(Launch& launch, const std::vector<std::string>& outputs, const std::vector<std::string>& lses);

} // namespace cubridge::ir::transfer
