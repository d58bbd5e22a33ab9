// Identifiers that a program may not give to its names. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string_view>

namespace cubridge::ir::lower {

/// Words of C++, and names that rules print or an expert's opening declares.
bool is_reserved(std::string_view name);

} // namespace cubridge::ir::lower
