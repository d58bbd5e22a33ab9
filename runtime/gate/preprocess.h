// What the compiler sees of a text: directives obeyed, macros expanded.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/compiler/token.h"
#include <set>

namespace cubridge::runtime::gates {

/// No more is ever looked at.
inline constexpr std::size_t kMostTokens = std::size_t{1} << 20u;

/// Tokens as the compiler has them after preprocessing, without line ends, pragmas and an End; the line is that where a
/// token stands, in a macro's body too. Throws a Fault ("gate") on what could be read in two ways or needs no kernel:
/// headers, conditions but #ifdef and #ifndef of what the text itself decides, # and ## in macros, macros under a name
/// of `taken` or that begins with _, that are defined twice, recursive, of variable arguments, or called without
/// brackets.
std::vector<Token> preprocess(const SourceText& source, const std::set<std::string, std::less<>>& taken);

} // namespace cubridge::runtime::gates
