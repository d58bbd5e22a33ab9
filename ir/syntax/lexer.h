// Text to tokens, one at a time and on demand, so that the first error of a text is the first in reading order and
// hostile text costs no memory before the parser refuses it. Fails (see error.h) on what no token can be made of.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/error.h"
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cubridge::ir::syntax {

struct Token {
    enum class Kind : std::uint8_t { Name, Keyword, Int, Float, String, FString, Op, Newline, Indent, Dedent, End };
    Kind kind = Kind::End;
    std::string_view text; ///< as written; lives as long as the source
    std::string value;     ///< String: decoded; FString: as written, without quotes
    std::int64_t integer = 0;
    double real = 0;
    Span span;

    bool op(std::string_view spelling) const { return kind == Kind::Op && text == spelling; }
    bool word(std::string_view spelling) const { return kind == Kind::Keyword && text == spelling; }
};

/// A bracket that is open, and where.
struct Bracket {
    char shape = 0;
    Span span;
};

/// Not thread-safe; borrows the source.
class Lexer {
public:
    /// `source` is UTF-8 without NUL (check_encoding) and without BOM.
    explicit Lexer(std::string_view source) : source_(source) {}

    /// The next token; End for ever after the last.
    Token next();

    /// The innermost bracket that is open after the last token, or null.
    const Bracket* open() const { return brackets_.empty() ? nullptr : &brackets_.back(); }

private:
    struct Indentation {
        int width = 0;     ///< tabs to multiples of 8
        int alternate = 0; ///< tabs as one: both must agree about the order of two lines
    };

    char peek(std::size_t ahead = 0) const { return at_ + ahead < source_.size() ? source_[at_ + ahead] : '\0'; }
    bool done() const { return at_ >= source_.size(); }
    bool at_newline() const { return peek() == '\n' || peek() == '\r'; }
    void advance(std::size_t bytes = 1);
    void newline();
    void skip_comment();
    Span here(int width = 1) const { return {line_, column_, line_, column_ + width}; }
    Token start(Token::Kind kind) const;
    Token finish(Token token, std::size_t from) const;

    bool skip_blank();
    bool begin_line(Token& token);
    void compare_indentation(Indentation now, Token& token);
    Token word();
    Token number();
    Token string(std::size_t prefix);
    Token operation();
    void bracket(char shape, Span span);
    [[noreturn]] void strange();

    void radix_digits(int base);
    void decimal_digits();
    void escape(std::string& value);
    char32_t hex_escape(int digits, Span span);

    std::string_view source_;
    std::size_t at_ = 0;
    int line_ = 1, column_ = 1;
    bool line_begins_ = true; ///< the indentation of this line was not looked at yet
    bool line_open_ = false;  ///< a token of this logical line was given out, its Newline was not
    std::vector<Indentation> indents_{Indentation{}};
    std::size_t dedents_ = 0; ///< to give out
    std::vector<Bracket> brackets_;
};

bool is_keyword(std::string_view word);

/// Fails with kind "unsupported": `construct` is Python, but not of the subset.
[[noreturn]] void unsupported(std::string_view construct, Span span, std::string hint);

} // namespace cubridge::ir::syntax
