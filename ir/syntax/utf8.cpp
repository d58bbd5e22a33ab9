// UTF-8 as RFC 3629 has it.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/utf8.h"
#include "cubridge/ir/error.h"
#include <fmt/format.h>

namespace cubridge::ir::syntax {

std::size_t utf8_length(std::string_view text, std::size_t at) {
    auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
    const unsigned first = byte(at);
    if (first < 0x80) return at < text.size() ? 1 : 0;
    // The second byte's range excludes overlong forms, surrogates and what lies beyond U+10FFFF.
    unsigned low = 0x80, high = 0xBF;
    std::size_t length = 0;
    if (first >= 0xC2 && first <= 0xDF) {
        length = 2;
    } else if (first >= 0xE0 && first <= 0xEF) {
        length = 3;
        if (first == 0xE0) low = 0xA0;
        if (first == 0xED) high = 0x9F;
    } else if (first >= 0xF0 && first <= 0xF4) {
        length = 4;
        if (first == 0xF0) low = 0x90;
        if (first == 0xF4) high = 0x8F;
    } else {
        return 0;
    }
    if (byte(at + 1) < low || byte(at + 1) > high) return 0;
    for (std::size_t i = 2; i < length; ++i) {
        if ((byte(at + i) & 0xC0) != 0x80) return 0;
    }
    return length;
}

char32_t utf8_decode(std::string_view text, std::size_t at, std::size_t length) {
    const auto first = static_cast<unsigned char>(text[at]);
    if (length == 1) return first;
    char32_t point = first & (0x7Fu >> length);
    for (std::size_t i = 1; i < length; ++i) point = point << 6 | (static_cast<unsigned char>(text[at + i]) & 0x3Fu);
    return point;
}

void utf8_append(std::string& text, char32_t point) {
    auto put = [&](char32_t byte) { text.push_back(static_cast<char>(static_cast<unsigned char>(byte))); };
    if (point < 0x80) return put(point);
    if (point < 0x800) {
        put(0xC0 | point >> 6);
    } else {
        if (point < 0x10000) {
            put(0xE0 | point >> 12);
        } else {
            put(0xF0 | point >> 18);
            put(0x80 | (point >> 12 & 0x3F));
        }
        put(0x80 | (point >> 6 & 0x3F));
    }
    put(0x80 | (point & 0x3F));
}

void check_encoding(std::string_view source) {
    int line = 1, column = 1;
    for (std::size_t at = 0; at < source.size();) {
        const std::size_t length = utf8_length(source, at);
        const Span here{line, column, line, column + 1};
        if (length == 0) {
            fail("encoding", fmt::format("byte 0x{:02x} is not UTF-8", static_cast<unsigned char>(source[at])), here,
                 "save the text as UTF-8");
        }
        const char c = source[at];
        if (c == '\0') fail("encoding", "a NUL byte in the text", here, "remove it");
        at += length;
        ++column;
        if (c == '\n' || (c == '\r' && (at == source.size() || source[at] != '\n'))) {
            ++line;
            column = 1;
        }
    }
}

} // namespace cubridge::ir::syntax
