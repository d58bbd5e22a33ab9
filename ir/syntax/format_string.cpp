// f-strings mean nothing here, but they have to survive printing.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/format_string.h"
#include <fmt/format.h>

namespace cubridge::ir::syntax {
namespace {

bool fits(std::string_view text, std::string_view quotes) {
    bool touching = false; // an unescaped quote stands last
    for (std::size_t i = 0; i < text.size(); ++i) {
        touching = false;
        if (text[i] == '\\') {
            if (++i >= text.size()) return false;
            if (quotes.size() == 1 && text[i] == '\n') return false;
            continue;
        }
        if (quotes.size() == 1 && text[i] == '\n') return false;
        if (text.substr(i, quotes.size()) == quotes) return false;
        touching = text[i] == quotes.front();
    }
    return !touching;
}

} // namespace

std::string to_format_text(std::string_view value) {
    std::string text;
    for (const char c : value) {
        switch (c) {
        case '{': text += "{{"; break;
        case '}': text += "}}"; break;
        case '\\': text += "\\\\"; break;
        case '"': text += "\\\""; break;
        case '\'': text += "\\'"; break;
        case '\n': text += "\\n"; break;
        case '\r': text += "\\r"; break;
        case '\0': text += "\\x00"; break;
        default: text.push_back(c);
        }
    }
    return text;
}

void join_format_text(std::string& text, std::string_view next) {
    // "\1" before "2" must not become "\12".
    const std::size_t tail = text.size() < 3 ? 0 : text.size() - 3;
    const bool escaped = text.find('\\', tail) != text.npos;
    if (escaped && !next.empty() && next.front() >= '0' && next.front() <= '7') {
        text += fmt::format("\\x{:02x}", static_cast<unsigned char>(next.front()));
        next.remove_prefix(1);
    }
    text += next;
}

std::string_view format_quotes(std::string_view text) {
    for (const std::string_view quotes : {"\"", "'", "\"\"\"", "'''"}) {
        if (fits(text, quotes)) return quotes;
    }
    return {};
}

} // namespace cubridge::ir::syntax
