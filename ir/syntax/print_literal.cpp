// Numbers and strings, so that they read back as the same value.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/format_string.h"
#include "ir/syntax/printer.h"
#include <charconv>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace cubridge::ir::syntax {

void Printer::integer(std::int64_t value) {
    // The smallest has no literal of its own sign.
    if (value == std::numeric_limits<std::int64_t>::min()) return put("(-9223372036854775807 - 1)");
    put(fmt::format("{}", value));
}

void Printer::real(double value) {
    if (std::isnan(value)) return put("nan");
    if (std::isinf(value)) return put(value < 0 ? "-1e999" : "1e999");
    char buffer[32];
    // Where Python's repr() has an exponent, there is one here.
    const double size = std::fabs(value);
    const bool plain = size == 0 || (size >= 1e-4 && size < 1e16);
    const auto format = plain ? std::chars_format::fixed : std::chars_format::scientific;
    const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format).ptr;
    const std::string_view text(buffer, static_cast<std::size_t>(end - buffer));
    put(text);
    if (text.find_first_of(".e") == text.npos) put(".0");
}

void Printer::string(const Node& node) {
    if (node.kind == Kind::String) return quoted(node.text);
    const std::string_view quotes = format_quotes(node.text);
    put("f");
    // A tree made by hand may hold what no quotes fit.
    if (quotes.empty()) return quoted(node.text);
    put(quotes);
    put(node.text);
    put(quotes);
}

void Printer::quoted(std::string_view text) {
    put("\"");
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        switch (c) {
        case '"': put("\\\""); break;
        case '\\': put("\\\\"); break;
        case '\n': put("\\n"); break;
        case '\r': put("\\r"); break;
        case '\t': put("\\t"); break;
        default:
            if (byte < 0x20 || byte == 0x7F) {
                put(fmt::format("\\x{:02x}", byte));
            } else {
                out_.push_back(c);
            }
        }
    }
    put("\"");
}

} // namespace cubridge::ir::syntax
