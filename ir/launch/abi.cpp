// The argument block's definition as text for kernels. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include <string>

namespace cubridge::ir::abi {

const char* kernel_abi_text() {
    // The preprocessor has put all on one line; a line a member reads better in a kernel that somebody debugs.
    static const std::string text = [] {
        std::string out;
        int depth = 0;
        for (const char* c = kKernelAbiDefinition; *c != 0; ++c) {
            if (*c == '}') --depth;
            if (*c == ' ' && (out.empty() || out.back() == '\n')) continue;
            if (!out.empty() && out.back() == '\n' && depth > 0) out += "    ";
            out += *c;
            if (*c == '{') ++depth;
            if (*c == '{' || *c == ';') out += '\n';
        }
        return out;
    }();
    return text.c_str();
}

} // namespace cubridge::ir::abi
