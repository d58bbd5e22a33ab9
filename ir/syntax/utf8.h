// What the lexer needs to know about UTF-8.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace cubridge::ir::syntax {

/// Bytes of the well-formed code point that starts at `at`, or 0 where none does (overlong, surrogate, cut off, too
/// large).
std::size_t utf8_length(std::string_view text, std::size_t at);

/// The code point of `length` bytes at `at`; the bytes are known to be well-formed.
char32_t utf8_decode(std::string_view text, std::size_t at, std::size_t length);

/// Appends a code point that is not a surrogate and at most U+10FFFF.
void utf8_append(std::string& text, char32_t point);

/// Fails with kind "encoding" at the first byte that is not UTF-8, and at the first NUL.
void check_encoding(std::string_view source);

} // namespace cubridge::ir::syntax
