// Finds a specification among those that embed.cmake made a table of. SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/builtin.h"

namespace cubridge::runtime {

const BuiltIn* find_built_in(std::string_view name) {
    for (const BuiltIn& b : built_in_specifications())
        if (b.name == name) return &b;
    return nullptr;
}

} // namespace cubridge::runtime
