// Few rows that hold many pairs: covering arrays with constraints. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <functional>
#include <vector>

namespace cubridge::runtime {

/// Rows of one level per factor (0 to levels[f] - 1), at most `most` of them, each allowed, no two equal, so that as
/// many pairs of levels of two factors as possible meet in some row. Greedy; deterministic for a seed.
std::vector<std::vector<int>> pairwise(const std::vector<int>& levels, int most, std::uint64_t seed,
                                       const std::function<bool(const std::vector<int>&)>& allowed);

} // namespace cubridge::runtime
