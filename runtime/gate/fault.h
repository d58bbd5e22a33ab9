// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/compiler/source_text.h"

namespace cubridge::runtime::gates {

/// "line L: RULE: message", thrown inside the gates.
[[noreturn]] void refuse(std::size_t line, std::string_view rule, std::string_view message, std::string hint = {});

} // namespace cubridge::runtime::gates
