// Keeps untrusted CUDA text from reading the host's files through the compiler.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/include_gate.h"
namespace cubridge::runtime {
Outcome<void> include_gate(std::string_view source, const std::vector<std::string>& allowed_headers) {
    (void)allowed_headers;
    if (source.find("include") != std::string_view::npos) return Fault{"gate", "no include", ""};
    return {};
}
} // namespace cubridge::runtime
