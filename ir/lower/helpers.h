// Helpers that rules call: an expert need not have all of them. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::ir::lower {

/// Whether an identifier may have it.
bool in_word(char c);

/// The identifiers of a text.
std::set<std::string, std::less<>> words_of(std::string_view text);

/// The first helper that lines call and `words` does not have; "" if there is none.
std::string missing_helper(const std::vector<std::string>& lines, const std::set<std::string, std::less<>>& words);

} // namespace cubridge::ir::lower
