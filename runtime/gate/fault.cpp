// SPDX-License-Identifier: Apache-2.0
#include "runtime/gate/fault.h"
#include <fmt/format.h>

namespace cubridge::runtime::gates {

void refuse(std::size_t line, std::string_view rule, std::string_view message, std::string hint) {
    throw gate_fault(line, fmt::format("{}: {}", rule, message), std::move(hint));
}

} // namespace cubridge::runtime::gates
