// The rules, one a file, in the order in which they are applied to the kernel of a part. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/transfer/work.h"

namespace cubridge::ir::transfer {

void check_request(const Launch& launch); ///< refuses what no kernel of this expert can be
void residue(Work& work);                 ///< rows and keys of one residue class are an attention of their own
void shape(Work& work);                   ///< head dims, element type, tile sizes
void order(Work& work);                   ///< of work items
void inputs(Work& work);                  ///< which heads, tensors and rows of q, k, v are loaded
void strided_keys(Work& work);            ///< every T-th key beside dense ranges
void mask_statement(Work& work);          ///< which scores are dropped
void key_ranges(Work& work);              ///< which key tiles are visited
void score(Work& work);                   ///< what is made of a score
void weights(Work& work);                 ///< sinks, pointwise weights, ratios, gains
void output(Work& work);                  ///< empty rows, what is made of the weighted sum, LSE
void destination(Work& work);             ///< where the output is stored, and from what
/// What a mask's statement keeps and a key range leaves out is bounded by: keep implies j < it. Null: nothing simpler
/// than a row decides.
Expr length_of(Work& work);
/// `x = value` in the def that takes the scores, value a Real over the score: one statement, or, where a tanh caps the
/// score, a test whether any of a tile is so far from 0 that it takes tanh's two special functions.
std::vector<cuir::Statement> score_statements(Work& work, Local& local, Expr value);
/// The same for a value that reads a table over the distance of query and key: on tiles of which all pairs are so far
/// apart that the table is one value, that value is read once. Empty: not such a value.
std::vector<cuir::Statement> flat_tiles(Work& work, Local& local, Expr value);
/// Edits slices `tensor[b, head, ...]` in all statements of a block.
void edit_slices(std::vector<cuir::Statement>& block, const std::string& tensor,
                 const std::function<NodePtr(const NodePtr&)>& edit);
/// `t[b, h, lo:hi]` as `t[b, head, lo * step + first:hi * step + first:step]`; null: as it is.
NodePtr stepped(const NodePtr& slice, const NodePtr& head, const NodePtr& step, const NodePtr& first);
/// A slice of output rows `t[b, h, lo:hi]` as those of the class that h numbers, where items are of classes.
NodePtr of_class(const Work& work, const NodePtr& slice);
/// The kernel that makes the output of several parts.
void combine(Launch& launch, const std::vector<std::string>& outputs, const std::vector<std::string>& lses);

} // namespace cubridge::ir::transfer
