// Which statement of the expert stands for which of the target. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/facts.h"

namespace cubridge::ir::lower {

/// Aligns two bodies level by level: simple statements with equal ones, what opens a block with what opens the same
/// kind of block, its header changed or not, so that the body keeps its counterpart. Order is kept (a longest common
/// subsequence, weighed by how much of a block is equal).
class Alignment {
public:
    Alignment(const Analysis& expert, const Analysis& target) : expert_(expert), target_(target) {}

    /// For each statement of `b` its counterpart in `a`, or null.
    std::vector<const cuir::Statement*> align(const std::vector<cuir::Statement>& a,
                                              const std::vector<cuir::Statement>& b);
    bool equal(const cuir::Statement& a, const cuir::Statement& b);

private:
    int weight(const cuir::Statement& a, const cuir::Statement& b); ///< 0: no counterpart
    int total(const std::vector<cuir::Statement>& a, const std::vector<cuir::Statement>& b,
              std::vector<const cuir::Statement*>* out);
    const std::string& key(const Analysis& of, const cuir::Statement& s);

    const Analysis &expert_, &target_;
    std::map<const cuir::Statement*, std::string> keys_;
    std::map<std::pair<const cuir::Statement*, const cuir::Statement*>, int> weights_;
};

} // namespace cubridge::ir::lower
