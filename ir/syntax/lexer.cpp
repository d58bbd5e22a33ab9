// Lines, indentation, names and operators. Numbers and strings have files of their own.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/lexer.h"
#include "ir/syntax/utf8.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace cubridge::ir::syntax {
namespace {

bool begins_name(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}
bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
bool continues_name(char c) {
    return begins_name(c) || is_digit(c);
}

/// Letters before a quote that Python knows, in any order and case.
bool is_string_prefix(std::string_view word) {
    std::string lower;
    for (char c : word) lower.push_back(static_cast<char>(c | 0x20));
    constexpr std::array<std::string_view, 8> known = {"r", "u", "b", "f", "br", "rb", "fr", "rf"};
    return std::find(known.begin(), known.end(), lower) != known.end();
}

struct Lookalike {
    char32_t point;
    std::string_view name, instead;
};
constexpr Lookalike lookalikes[] = {
    {0x00A0, "a no-break space", "a space"},
    {0x3000, "an ideographic space", "a space"},
    {0x200B, "a zero-width space", ""},
    {0xFEFF, "a byte order mark", ""},
    {0x2018, "a typographic quote", "\"'\""},
    {0x2019, "a typographic quote", "\"'\""},
    {0x201A, "a typographic quote", "\"'\""},
    {0x201C, "a typographic quote", "'\"'"},
    {0x201D, "a typographic quote", "'\"'"},
    {0x201E, "a typographic quote", "'\"'"},
    {0x00AB, "a typographic quote", "'\"'"},
    {0x00BB, "a typographic quote", "'\"'"},
    {0x2212, "a minus sign", "'-'"},
    {0x2013, "a dash", "'-'"},
    {0x2014, "a dash", "'-'"},
    {0x00D7, "a multiplication sign", "'*'"},
    {0x00B7, "a middle dot", "'*'"},
    {0x22C5, "a dot operator", "'*'"},
    {0x00F7, "a division sign", "'/'"},
    {0x2264, "a comparison sign", "'<='"},
    {0x2265, "a comparison sign", "'>='"},
    {0x2260, "a comparison sign", "'!='"},
    {0x2192, "an arrow", "'->'"},
    {0x2026, "an ellipsis character", "'...'"},
    {0xFF08, "a full-width bracket", "'('"},
    {0xFF09, "a full-width bracket", "')'"},
    {0xFF0C, "a full-width comma", "','"},
    {0xFF1A, "a full-width colon", "':'"},
};

} // namespace

bool is_keyword(std::string_view word) {
    static constexpr std::array<std::string_view, 35> words = {
        "False", "None",     "True",  "and",    "as",   "assert", "async",  "await",    "break",
        "class", "continue", "def",   "del",    "elif", "else",   "except", "finally",  "for",
        "from",  "global",   "if",    "import", "in",   "is",     "lambda", "nonlocal", "not",
        "or",    "pass",     "raise", "return", "try",  "while",  "with",   "yield"};
    return std::binary_search(words.begin(), words.end(), word);
}

void unsupported(std::string_view construct, Span span, std::string hint) {
    fail("unsupported", fmt::format("{} at line {} is not supported", construct, span.line), span, std::move(hint));
}

void Lexer::advance(std::size_t bytes) {
    for (const std::size_t end = at_ + bytes; at_ < end; ++at_) {
        if ((static_cast<unsigned char>(source_[at_]) & 0xC0) != 0x80) ++column_;
    }
}

void Lexer::newline() {
    at_ += peek() == '\r' && peek(1) == '\n' ? 2 : 1;
    ++line_;
    column_ = 1;
}

void Lexer::skip_comment() {
    while (!done() && !at_newline()) advance();
}

Token Lexer::start(Token::Kind kind) const {
    Token token;
    token.kind = kind;
    token.span = here(0);
    return token;
}

Token Lexer::finish(Token token, std::size_t from) const {
    token.text = source_.substr(from, at_ - from);
    token.span.end_line = line_;
    token.span.end_column = column_;
    return token;
}

Token Lexer::next() {
    Token token;
    if (dedents_ > 0) {
        --dedents_;
        return start(Token::Kind::Dedent);
    }
    do {
        if (line_begins_ && begin_line(token)) return token;
        if (skip_blank()) {
            token = start(Token::Kind::Newline);
            newline();
            line_begins_ = true;
            line_open_ = false;
            return token;
        }
    } while (line_begins_);
    if (done()) {
        if (const Bracket* unclosed = open()) {
            fail("syntax", fmt::format("'{}' is never closed", unclosed->shape), unclosed->span,
                 "add the closing bracket");
        }
        if (line_open_) {
            line_open_ = false;
            return start(Token::Kind::Newline);
        }
        if (indents_.size() > 1) {
            indents_.pop_back();
            return start(Token::Kind::Dedent);
        }
        return start(Token::Kind::End);
    }
    line_open_ = true;
    const char c = peek();
    if (begins_name(c)) return word();
    if (is_digit(c) || (c == '.' && is_digit(peek(1)))) return number();
    if (c == '"' || c == '\'') return string(0);
    return operation();
}

/// Skips spaces, comments and joined lines; true at the end of a logical line.
bool Lexer::skip_blank() {
    while (!done()) {
        const char c = peek();
        if (c == ' ' || c == '\t' || c == '\f') {
            advance();
        } else if (c == '#') {
            skip_comment();
        } else if (c == '\\') {
            const Span at = here();
            advance();
            if (!at_newline()) {
                fail("syntax", "a backslash is not at the end of its line", at,
                     "a backslash joins lines only when nothing follows it, not even a space");
            }
            newline();
            if (done()) fail("syntax", "the text ends after a backslash that joins lines", at, "remove the backslash");
        } else if (!at_newline()) {
            return false;
        } else if (!brackets_.empty()) {
            newline();
        } else if (line_open_) {
            return true;
        } else { // a line of which only a joined empty line was left
            newline();
            line_begins_ = true;
            return false;
        }
    }
    return false;
}

/// Looks at the indentation of the next line that is not empty; true if that makes a token.
bool Lexer::begin_line(Token& token) {
    Indentation now;
    for (;;) {
        now = {};
        for (;; advance()) {
            const char c = peek();
            if (c == ' ') {
                ++now.width;
                ++now.alternate;
            } else if (c == '\t') {
                now.width = (now.width / 8 + 1) * 8;
                ++now.alternate;
            } else if (c == '\f') {
                now = {};
            } else {
                break;
            }
        }
        if (peek() == '#') skip_comment();
        if (done()) {
            line_begins_ = false;
            return false;
        }
        if (!at_newline()) break;
        newline();
    }
    line_begins_ = false;
    token = start(Token::Kind::End);
    compare_indentation(now, token);
    return token.kind != Token::Kind::End;
}

void Lexer::compare_indentation(Indentation now, Token& token) {
    auto mixed = [&] {
        fail("syntax", "tabs and spaces are mixed in the indentation", here(), "indent with spaces only");
    };
    if (now.width == indents_.back().width) {
        if (now.alternate != indents_.back().alternate) mixed();
        return;
    }
    if (now.width > indents_.back().width) {
        if (now.alternate <= indents_.back().alternate) mixed();
        indents_.push_back(now);
        token.kind = Token::Kind::Indent;
        return;
    }
    std::string levels;
    while (now.width < indents_.back().width) {
        indents_.pop_back();
        ++dedents_;
    }
    if (now.width != indents_.back().width) {
        fail("syntax", "unindent does not match any outer indentation", here(),
             fmt::format("indent by {} columns, as the block around it", indents_.back().width));
    }
    if (now.alternate != indents_.back().alternate) mixed();
    --dedents_;
    token.kind = Token::Kind::Dedent;
}

Token Lexer::word() {
    std::size_t length = 1;
    while (continues_name(peek(length))) ++length;
    const std::string_view text = source_.substr(at_, length);
    const char after = peek(length);
    if ((after == '"' || after == '\'') && length <= 2 && is_string_prefix(text)) return string(length);
    Token token = start(is_keyword(text) ? Token::Kind::Keyword : Token::Kind::Name);
    const std::size_t from = at_;
    advance(length);
    if (static_cast<unsigned char>(peek()) >= 0x80) strange();
    return finish(std::move(token), from);
}

Token Lexer::operation() {
    static constexpr std::array<std::string_view, 48> spellings = {
        "**=", "//=", ">>=", "<<=", "...", "**", "//", "<<", ">>", "<=", ">=", "==", "!=", "->", "+=", "-=",
        "*=",  "/=",  "%=",  "@=",  "&=",  "|=", "^=", ":=", "+",  "-",  "*",  "/",  "%",  "@",  "&",  "|",
        "^",   "~",   "<",   ">",   "(",   ")",  "[",  "]",  "{",  "}",  ",",  ":",  ".",  ";",  "=",  ""};
    const std::string_view rest = source_.substr(at_, 3);
    // What other languages write; no text that Python accepts holds these outside strings.
    auto foreign = [&](std::string_view spelling, std::string_view instead) {
        if (rest.substr(0, spelling.size()) != spelling) return;
        fail("syntax", fmt::format("'{}' is not an operator", spelling), here(static_cast<int>(spelling.size())),
             fmt::format("write '{}'", instead));
    };
    foreign("&&", "and");
    foreign("||", "or");
    foreign("<>", "!=");
    foreign("===", "==");
    foreign("!==", "!=");
    if (rest.substr(0, 2) != "!=") foreign("!", "not");
    const auto* spelling = std::find_if(spellings.begin(), spellings.end(),
                                        [&](std::string_view s) { return rest.substr(0, s.size()) == s; });
    if (spelling->empty()) strange();
    Token token = start(Token::Kind::Op);
    const std::size_t from = at_;
    advance(spelling->size());
    token = finish(std::move(token), from);
    if (spelling->size() == 1) bracket(spelling->front(), token.span);
    return token;
}

void Lexer::bracket(char shape, Span span) {
    constexpr std::string_view opening = "([{", closing = ")]}";
    if (opening.find(shape) != opening.npos) {
        brackets_.push_back({shape, span});
    } else if (const std::size_t which = closing.find(shape); which != closing.npos) {
        if (brackets_.empty()) {
            fail("syntax", fmt::format("'{}' closes nothing", shape), span,
                 shape == '}' ? "blocks are made by indentation, not by braces" : "remove it");
        }
        if (const Bracket& last = brackets_.back(); last.shape != opening[which]) {
            fail("syntax",
                 fmt::format("'{}' does not close '{}', which was opened at line {}, column {}", shape, last.shape,
                             last.span.line, last.span.column),
                 span, fmt::format("write '{}'", closing[opening.find(last.shape)]));
        }
        brackets_.pop_back();
    }
}

/// A character that begins no token.
void Lexer::strange() {
    const std::size_t length = utf8_length(source_, at_);
    const char32_t point = utf8_decode(source_, at_, length);
    const Span span = here();
    for (const Lookalike& like : lookalikes) {
        if (like.point != point) continue;
        fail("syntax", fmt::format("{} (U+{:04X}) outside a string", like.name, std::uint32_t{point}), span,
             like.instead.empty() ? "remove it" : fmt::format("write {}", like.instead));
    }
    if (point >= 0x80) {
        const auto shown = source_.substr(at_, length);
        unsupported(fmt::format("'{}' (U+{:04X}) outside a string", shown, std::uint32_t{point}), span,
                    "names are made of ASCII letters, digits and '_'");
    }
    if (point < 0x20 || point == 0x7F) {
        fail("syntax", fmt::format("control character U+{:04X}", std::uint32_t{point}), here(), "remove it");
    }
    fail("syntax", fmt::format("'{}' is not part of the language", peek()), here(),
         peek() == '?' ? "write 'a if condition else b'" : "");
}

} // namespace cubridge::ir::syntax
