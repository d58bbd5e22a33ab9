// Keeps untrusted CUDA text from reading the host's files through the compiler.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/fault.h"
#include <string_view>
#include <vector>

namespace cubridge::runtime {

/// Whether `source` may be given to a compiler that would read any file which the source names. A fault ("gate") names
/// the first offending line. Pure; linear in the text.
Outcome<void> include_gate(std::string_view source, const std::vector<std::string>& allowed_headers);

} // namespace cubridge::runtime
