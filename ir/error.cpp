// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include <string_view>

namespace cubridge::ir {

void fail(std::string kind, std::string message, Span span, std::string hint) {
    throw Failure{Error{std::move(kind), std::move(message), span, std::move(hint)}};
}

namespace {

std::string_view line_of(std::string_view source, int line) {
    for (int at = 1; at < line; ++at) {
        const auto end = source.find('\n');
        if (end == std::string_view::npos) return {};
        source.remove_prefix(end + 1);
    }
    return source.substr(0, source.find('\n'));
}

} // namespace

std::string Error::render(const std::string& source) const {
    std::string out;
    if (span.line > 0) out += std::to_string(span.line) + ":" + std::to_string(span.column) + ": ";
    out += message;
    const auto text = span.line > 0 ? line_of(source, span.line) : std::string_view{};
    if (!text.empty() && text.size() <= 400) {
        out += "\n    ";
        out += text;
        out += "\n    ";
        int column = 1; // a caret under the code point, not under the byte; tabs keep their width
        for (const char c : text) {
            if ((static_cast<unsigned char>(c) & 0xC0u) == 0x80u) continue;
            if (column++ >= span.column) break;
            out += c == '\t' ? '\t' : ' ';
        }
        out += '^';
    }
    if (!hint.empty()) out += "\n    hint: " + hint;
    return out;
}

} // namespace cubridge::ir
