// Line splicing.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/source_text.h"
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr std::size_t longest = std::size_t{8} << 20u;

/// Bytes of the UTF-8 character at the start of `rest`; 0 if it is none.
std::size_t character_at(std::string_view rest) {
    const auto lead = static_cast<unsigned char>(rest[0]);
    const std::size_t size = lead < 0x80   ? 1
                             : lead < 0xc2 ? 0
                             : lead < 0xe0 ? 2
                             : lead < 0xf0 ? 3
                             : lead < 0xf5 ? 4
                                           : 0;
    if (size > rest.size()) return 0;
    for (std::size_t i = 1; i < size; ++i)
        if ((static_cast<unsigned char>(rest[i]) & 0xc0u) != 0x80u) return 0;
    return size;
}

/// What is wrong at the start of `rest`, or nothing.
const char* doubt(std::string_view rest) {
    const char c = rest[0];
    if (c == '\r') return rest.substr(0, 2) == "\r\n" ? nullptr : "a carriage return that is not part of a line's end";
    if ((static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t') || c == 0x7f) return "a control character";
    if (c == '?' && rest.size() >= 3 && rest[1] == '?' &&
        std::string_view("=/'()!<>-").find(rest[2]) != std::string_view::npos)
        return "a trigraph";
    if (c == '\\') {
        const auto next = rest.find_first_not_of(" \t", 1);
        if (next != 1 && next != std::string_view::npos && (rest[next] == '\n' || rest[next] == '\r'))
            return "a backslash with blanks between it and the end of its line";
    }
    return nullptr;
}

} // namespace

Fault gate_fault(std::size_t line, std::string message, std::string hint) {
    return Fault{"gate", fmt::format("line {}: {}", line, message), std::move(hint)};
}

Outcome<SourceText> splice(std::string_view source) {
    if (source.size() > longest) return gate_fault(1, "the source is larger than 8 MiB");
    SourceText spliced;
    spliced.source = source;
    spliced.text.reserve(source.size());
    std::uint32_t line = 1;
    const auto note = [&](std::size_t at) {
        spliced.offset.push_back(static_cast<std::uint32_t>(at));
        spliced.line.push_back(line);
    };
    for (std::size_t at = 0; at < source.size();) {
        const auto rest = source.substr(at);
        if (const char* what = doubt(rest)) return gate_fault(line, fmt::format("{} is not allowed", what));
        const auto size = character_at(rest);
        if (size == 0) return gate_fault(line, "the text is not UTF-8");
        const std::size_t skipped = rest.substr(0, 2) == "\\\n" ? 2 : rest.substr(0, 3) == "\\\r\n" ? 3 : 0;
        if (skipped > 0) {
            ++line;
            at += skipped;
            continue;
        }
        if (rest[0] == '\r') { // of a CR LF
            ++at;
            continue;
        }
        for (std::size_t i = 0; i < size; ++i) {
            note(at + i);
            spliced.text += rest[i];
        }
        if (rest[0] == '\n') ++line;
        at += size;
    }
    note(source.size());
    return spliced;
}

} // namespace cubridge::runtime
