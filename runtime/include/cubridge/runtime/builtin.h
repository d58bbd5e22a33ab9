// The specifications that come with the library. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace cubridge::runtime {

/// All views live as long as the program.
struct BuiltIn {
    std::string_view name;  ///< "causal"
    std::string_view title; ///< the first line of the text, without its comment sign
    std::string_view text;  ///< the whole specification
};

std::span<const BuiltIn> built_in_specifications();  ///< by name
const BuiltIn* find_built_in(std::string_view name); ///< null: there is none of that name

} // namespace cubridge::runtime
