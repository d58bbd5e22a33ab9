// Words that mean something without a declaration in the text, and what a kernel may do with them.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <string_view>

namespace cubridge::runtime::gates {

enum class Word {
    Own,       ///< means nothing by itself: the text declares it, or the compiler refuses it
    Keyword,   ///< of the language, allowed
    Type,      ///< int, float4, ...
    Attribute, ///< __device__, ...
    Builtin,   ///< threadIdx, ...
    Function,  ///< a function of the device that computes, or that synchronises a block
    Atomic,    ///< with Declared::ticket
    Refused    ///< why_not() says why
};

Word word(std::string_view text);

/// Of a Refused one: {"call", "allocates memory"}.
struct Reason {
    std::string_view rule, what;
};
Reason why_not(std::string_view text);

/// All that are not Own and have no family: what a macro may not be called.
const std::set<std::string, std::less<>>& words();

} // namespace cubridge::runtime::gates
