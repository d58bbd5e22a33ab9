// JSON text. SPDX-License-Identifier: Apache-2.0
#include "bindings/cli/json.h"
#include <cmath>
#include <fmt/format.h>

namespace cubridge::cli {

namespace {

// Bytes of the well-formed UTF-8 sequence at the start of `s`; 0 where there is none.
std::size_t sequence(std::string_view s) {
    const auto byte = [&](std::size_t k) { return static_cast<unsigned char>(s[k]); };
    const unsigned char first = byte(0);
    const std::size_t n = first < 0x80                    ? 1
                          : first >= 0xC2 && first < 0xE0 ? 2
                          : first >= 0xE0 && first < 0xF0 ? 3
                          : first >= 0xF0 && first < 0xF5 ? 4
                                                          : 0;
    if (n == 0 || n > s.size()) return 0;
    for (std::size_t k = 1; k < n; ++k)
        if ((byte(k) & 0xC0) != 0x80) return 0;
    if (n == 3 && ((first == 0xE0 && byte(1) < 0xA0) || (first == 0xED && byte(1) >= 0xA0))) return 0;
    if (n == 4 && ((first == 0xF0 && byte(1) < 0x90) || (first == 0xF4 && byte(1) >= 0x90))) return 0;
    return n;
}

} // namespace

std::string quoted(std::string_view text) {
    std::string out = "\"";
    while (!text.empty()) {
        const std::size_t n = sequence(text);
        const char c = text[0];
        if (n == 0)
            out += "\\ufffd";
        else if (n > 1)
            out += text.substr(0, n);
        else if (c == '"' || c == '\\')
            out += '\\', out += c;
        else if (c == '\n')
            out += "\\n";
        else if (c == '\t')
            out += "\\t";
        else if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f)
            out += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
        else
            out += c;
        text.remove_prefix(n == 0 ? 1 : n);
    }
    return out + '"';
}

std::string number(double value) {
    return std::isfinite(value) ? fmt::format("{:.6g}", value) : "null";
}

Object& Object::raw(std::string_view name, std::string_view json) {
    if (!members_.empty()) members_ += ", ";
    members_ += quoted(name);
    members_ += ": ";
    members_ += json;
    return *this;
}

List& List::add(std::string_view json) {
    if (!items_.empty()) items_ += ", ";
    items_ += json;
    return *this;
}

} // namespace cubridge::cli
