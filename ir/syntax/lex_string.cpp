// String literals: quotes, prefixes and escapes.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/lexer.h"
#include "ir/syntax/utf8.h"
#include <fmt/format.h>

namespace cubridge::ir::syntax {
namespace {

int hex_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'f') return (c | 0x20) - 'a' + 10;
    return -1;
}

} // namespace

/// A string whose quote stands `prefix` bytes ahead.
Token Lexer::string(std::size_t prefix) {
    Token token = start(Token::Kind::String);
    const std::size_t from = at_;
    bool raw = false;
    for (std::size_t i = 0; i < prefix; ++i) {
        switch (peek(i) | 0x20) {
        case 'r': raw = true; break;
        case 'f': token.kind = Token::Kind::FString; break;
        case 'b': unsupported("a bytes literal", here(static_cast<int>(prefix) + 1), "remove the b"); break;
        default: break;
        }
    }
    const bool format = token.kind == Token::Kind::FString;
    if (format && raw) {
        unsupported("a raw f-string", here(static_cast<int>(prefix) + 1), "remove the r and double its backslashes");
    }
    advance(prefix);
    const char quote = peek();
    const std::size_t width = peek(1) == quote && peek(2) == quote ? 3 : 1;
    advance(width);
    const auto closes = [&] { return peek() == quote && (width == 1 || (peek(1) == quote && peek(2) == quote)); };
    const auto take = [&] { // a character, or a line end whatever its spelling
        if (at_newline()) {
            token.value.push_back('\n');
            newline();
        } else {
            token.value.push_back(peek());
            advance();
        }
    };
    while (!closes()) {
        if (done() || (width == 1 && at_newline())) {
            Span opening = token.span;
            opening.end_line = opening.line;
            opening.end_column = opening.column + static_cast<int>(prefix + width);
            if (width == 3) fail("syntax", "a triple-quoted string is never closed", opening, "add the closing quotes");
            fail("syntax", "a string is not closed on its line", opening,
                 fmt::format("add the closing {}, or use triple quotes for several lines", quote));
        }
        if (peek() != '\\') {
            take();
        } else if (raw || format) {
            take();
            if (!done()) take();
        } else {
            escape(token.value);
        }
    }
    advance(width);
    return finish(std::move(token), from);
}

void Lexer::escape(std::string& value) {
    const Span at = here(2);
    advance();
    if (done()) return; // the caller reports a string that is not closed
    if (at_newline()) return newline();
    const char c = peek();
    constexpr std::string_view names = "\\'\"abfnrtv", values = "\\'\"\a\b\f\n\r\t\v";
    if (const std::size_t which = names.find(c); which != names.npos) {
        value.push_back(values[which]);
        advance();
    } else if (c >= '0' && c <= '7') {
        char32_t point = 0;
        for (int i = 0; i < 3 && peek() >= '0' && peek() <= '7'; ++i, advance()) {
            point = point * 8 + static_cast<char32_t>(peek() - '0');
        }
        utf8_append(value, point);
    } else if (c == 'x' || c == 'u' || c == 'U') {
        advance();
        utf8_append(value, hex_escape(c == 'x' ? 2 : c == 'u' ? 4 : 8, at));
    } else if (c == 'N') {
        unsupported("an escape by character name", at, "write the character itself, or \\u and its number");
    } else {
        value.push_back('\\'); // as Python does with an escape that it does not know
    }
}

char32_t Lexer::hex_escape(int digits, Span span) {
    char32_t point = 0;
    for (int i = 0; i < digits; ++i, advance()) {
        const int digit = hex_value(peek());
        if (digit < 0) fail("syntax", fmt::format("an escape needs {} hexadecimal digits", digits), span);
        point = point * 16 + static_cast<char32_t>(digit);
        if (point > 0x10FFFF) fail("syntax", "an escape beyond U+10FFFF", span);
    }
    if (point >= 0xD800 && point <= 0xDFFF)
        unsupported("an escape that makes half a character", span, "write the character itself");
    return point;
}

} // namespace cubridge::ir::syntax
