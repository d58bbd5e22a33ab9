// Any bytes: the parser refuses them, or printing and parsing again gives the same tree and the same text.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace cubridge::ir::syntax;
    const auto tree = parse(std::string_view(reinterpret_cast<const char*>(data), size));
    if (!tree) {
        if (tree.error().message.empty() || tree.error().span.line < 1 || tree.error().span.column < 1) std::abort();
        return 0;
    }
    const std::string printed = print(**tree);
    const auto again = parse(printed);
    if (!again || !equal(**tree, **again) || print(**again) != printed) std::abort();
    return 0;
}
