// Two texts, line by line, as a unified diff without file names; two lines of context.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>

namespace cubridge::ir::lower {

/// "" for equal texts. Quadratic in the lines: for programs.
std::string unified_difference(const std::string& before, const std::string& after);

} // namespace cubridge::ir::lower
