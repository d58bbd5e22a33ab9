// Number literals: decimal, hexadecimal, octal, binary, floating point, with underscores between digits.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/lexer.h"
#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <limits>

namespace cubridge::ir::syntax {
namespace {

int digit_value(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if ((c | 0x20) >= 'a' && (c | 0x20) <= 'z') return (c | 0x20) - 'a' + 10;
    return 99;
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

/// What from_chars leaves out: is the number too large (infinity) or too small (zero)?
bool overflows(std::string_view text) {
    const std::size_t mark = text.find_first_of("eE");
    const std::string_view mantissa = text.substr(0, mark);
    const std::size_t point = std::min(mantissa.find('.'), mantissa.size());
    const std::size_t leading = mantissa.find_first_of("123456789");
    if (leading == mantissa.npos) return false;
    auto magnitude = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(leading);
    if (mark != text.npos) {
        std::string_view digits = text.substr(mark + 1);
        const bool negative = digits.front() == '-';
        if (negative || digits.front() == '+') digits.remove_prefix(1);
        std::int64_t exponent = 0;
        for (char c : digits) exponent = std::min<std::int64_t>(exponent * 10 + (c - '0'), 1'000'000'000);
        magnitude += negative ? -exponent : exponent;
    }
    return magnitude > 0;
}

double to_double(std::string_view text) {
    double value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
    if (result.ec == std::errc::result_out_of_range) {
        return overflows(text) ? std::numeric_limits<double>::infinity() : 0.0;
    }
    return value;
}

} // namespace

/// Digits of `base`, each after at most one underscore.
void Lexer::radix_digits(int base) {
    if (peek() == '_') advance();
    if (digit_value(peek()) >= base) fail("syntax", fmt::format("a digit of base {} is missing", base), here());
    decimal_digits();
    if (base > 10) {
        for (;;) {
            if (peek() == '_' && digit_value(peek(1)) < base) {
                advance(2);
            } else if (digit_value(peek()) < base) {
                advance();
            } else {
                return;
            }
        }
    }
}

void Lexer::decimal_digits() {
    while (is_digit(peek()) || (peek() == '_' && is_digit(peek(1)))) advance();
}

Token Lexer::number() {
    Token token = start(Token::Kind::Int);
    const std::size_t from = at_;
    int base = 10;
    if (peek() == '0') {
        const char mark = static_cast<char>(peek(1) | 0x20);
        base = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 10;
    }
    if (base != 10) {
        advance(2);
        radix_digits(base);
    } else {
        decimal_digits();
        if (peek() == '.') {
            token.kind = Token::Kind::Float;
            advance();
            if (is_digit(peek())) decimal_digits();
        }
        if ((peek() | 0x20) == 'e') {
            const std::size_t sign = peek(1) == '+' || peek(1) == '-' ? 1 : 0;
            if (is_digit(peek(1 + sign))) {
                token.kind = Token::Kind::Float;
                advance(1 + sign);
                decimal_digits();
            }
        }
    }
    token = finish(std::move(token), from);
    if ((peek() | 0x20) == 'j') {
        unsupported("an imaginary number", token.span, "only integers and real numbers are known");
    }
    if (digit_value(peek()) < 99 || peek() == '_') {
        fail("syntax", fmt::format("'{}' directly after a number", peek()), here(),
             "put a space or an operator between");
    }
    std::string digits(token.text.substr(base == 10 ? 0 : 2));
    digits.erase(std::remove(digits.begin(), digits.end(), '_'), digits.end());
    if (token.kind == Token::Kind::Float) {
        token.real = to_double(digits);
        return token;
    }
    if (base == 10 && digits.size() > 1 && digits.front() == '0' && digits.find_first_not_of('0') != digits.npos) {
        fail("syntax", "a decimal integer begins with 0", token.span, "remove the zero, or write 0o for octal");
    }
    for (char c : digits) {
        const int digit = digit_value(c);
        if (digit >= base) fail("syntax", fmt::format("'{}' is not a digit of base {}", c, base), token.span);
        if (token.integer > (std::numeric_limits<std::int64_t>::max() - digit) / base) {
            fail("limit", "an integer does not fit into 64 bits", token.span, "write it as a float, or smaller");
        }
        token.integer = token.integer * base + digit;
    }
    return token;
}

} // namespace cubridge::ir::syntax
