// The text of an f-string as it stands between its quotes: how to join two, and which quotes hold one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <string>
#include <string_view>

namespace cubridge::ir::syntax {

/// A plain string's value as the text of an f-string.
std::string to_format_text(std::string_view value);

/// Appends so that no escape at the end of `text` swallows what follows.
void join_format_text(std::string& text, std::string_view next);

/// The quotes between which `text` reads back as it is, of ", ', """ and '''; empty if there are none.
std::string_view format_quotes(std::string_view text);

} // namespace cubridge::ir::syntax
