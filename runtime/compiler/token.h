// The preprocessing tokens of CUDA text, as far as gates need to tell them apart.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/compiler/source_text.h"

namespace cubridge::runtime {

struct Token {
    enum class Kind { Identifier, Number, String, Character, Mark, Hash, LineEnd, End };
    Kind kind = Kind::End;
    std::string text; ///< as written after splicing; of a String: its value, escapes resolved
    std::size_t line = 0;
    bool first = false; ///< nothing but blanks and comments before it since any line end, one inside a comment included
    bool glued = false; ///< the one before ends where it begins

    bool is(std::string_view mark) const { return kind == Kind::Mark && text == mark; }
};

/// Reads a text token by token. Comments are blanks. A Hash is # or its digraph %:, and ## is two of them. Throws a
/// Fault ("gate") on what it does not understand, which the gates catch.
class Tokens {
public:
    explicit Tokens(const SourceText& source) : source_(source), text_(source.text) {}

    Token next();

    /// In a directive: what stands between <> or quotes, nothing resolved; empty if anything else comes next. Consumes
    /// it.
    std::string header_name();

    /// Blanks and comments; in a directive a comment must end on its line.
    void skip_blanks(bool in_directive);

private:
    std::size_t line() const { return source_.line[at_]; }
    bool at(std::string_view what) const { return text_.substr(at_, what.size()) == what; }
    std::string literal(char quote);
    std::string raw_literal();
    char32_t escape();

    const SourceText& source_;
    const std::string_view text_;
    std::size_t at_ = 0;
    bool first_ = true;
};

} // namespace cubridge::runtime
