// The preprocessing tokens of CUDA text.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/compiler/token.h"
#include <algorithm>
#include <cctype>
#include <iterator>

namespace cubridge::runtime {
namespace {

bool letter(char c) {
    return std::isalpha(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '$';
}
bool digit(char c) {
    return std::isdigit(static_cast<unsigned char>(c)) != 0;
}

bool one_of(std::string_view text, std::initializer_list<std::string_view> list) {
    return std::find(list.begin(), list.end(), text) != list.end();
}

} // namespace

void Tokens::skip_blanks(bool in_directive) {
    while (at_ < text_.size()) {
        if (text_[at_] == ' ' || text_[at_] == '\t') {
            ++at_;
        } else if (at("//")) {
            at_ = std::min(text_.find('\n', at_), text_.size());
        } else if (at("/*")) {
            const auto end = text_.find("*/", at_ + 2);
            if (end == std::string_view::npos) throw gate_fault(line(), "a comment does not end");
            if (text_.substr(at_, end - at_).find('\n') != std::string_view::npos) {
                if (in_directive) throw gate_fault(line(), "a comment in a directive must end on its line");
                first_ = true;
            }
            at_ = end + 2;
        } else {
            return;
        }
    }
}

Token Tokens::next() {
    const auto before = at_;
    skip_blanks(false);
    Token token;
    token.line = line();
    token.first = first_;
    token.glued = at_ == before;
    if (at_ >= text_.size()) return token;
    const char c = text_[at_];
    if (c == '\n') {
        ++at_;
        first_ = true;
        token.kind = Token::Kind::LineEnd;
        return token;
    }
    first_ = false;
    const auto begin = at_;
    if (letter(c)) {
        while (at_ < text_.size() && (letter(text_[at_]) || digit(text_[at_]))) ++at_;
        token.text = text_.substr(begin, at_ - begin);
        token.kind = Token::Kind::Identifier;
        const char quote = at_ < text_.size() ? text_[at_] : ' ';
        if (quote == '"' && one_of(token.text, {"R", "u8R", "uR", "UR", "LR"})) {
            token.text = raw_literal();
            token.kind = Token::Kind::String;
        } else if ((quote == '"' || quote == '\'') && one_of(token.text, {"u8", "u", "U", "L"})) {
            token.text = literal(quote);
            token.kind = quote == '"' ? Token::Kind::String : Token::Kind::Character;
        }
    } else if (digit(c) || (c == '.' && at_ + 1 < text_.size() && digit(text_[at_ + 1]))) {
        for (++at_; at_ < text_.size(); ++at_) {
            const char d = text_[at_], before = text_[at_ - 1];
            const bool sign =
                (d == '+' || d == '-') && (before == 'e' || before == 'E' || before == 'p' || before == 'P');
            const bool separator =
                d == '\'' && at_ + 1 < text_.size() && (letter(text_[at_ + 1]) || digit(text_[at_ + 1]));
            if (!letter(d) && !digit(d) && d != '.' && !sign && !separator) break;
        }
        token.text = text_.substr(begin, at_ - begin);
        token.kind = Token::Kind::Number;
    } else if (c == '"' || c == '\'') {
        token.text = literal(c);
        token.kind = c == '"' ? Token::Kind::String : Token::Kind::Character;
    } else if (c == '#' || at("%:")) {
        at_ += c == '#' ? 1 : 2;
        token.text = "#";
        token.kind = Token::Kind::Hash;
    } else if (c == '\\') {
        throw gate_fault(line(), "a backslash outside of a literal is not allowed",
                         "universal character names can spell directives");
    } else if ((static_cast<unsigned char>(c) & 0x80u) != 0) {
        throw gate_fault(line(), "only comments and literals may hold characters outside ASCII");
    } else {
        ++at_;
        token.text = c;
        token.kind = Token::Kind::Mark;
    }
    return token;
}

std::string Tokens::header_name() {
    skip_blanks(true);
    if (at_ >= text_.size() || (text_[at_] != '<' && text_[at_] != '"')) return {};
    const auto end = text_.find(text_[at_] == '<' ? '>' : '"', at_ + 1);
    const auto name = text_.substr(at_ + 1, end == std::string_view::npos ? end : end - at_ - 1);
    if (end == std::string_view::npos || name.find('\n') != std::string_view::npos) return {};
    at_ = end + 1;
    return std::string(name);
}

/// From the opening quote to behind the closing one.
std::string Tokens::literal(char quote) {
    const auto begin = line();
    std::string value;
    for (++at_; at_ < text_.size() && text_[at_] != '\n';) {
        if (text_[at_] == quote) {
            ++at_;
            return value;
        }
        if (text_[at_] == '\\') {
            const char32_t code = escape();
            value += code < 0x80 ? static_cast<char>(code) : '?'; // what the gate looks for is ASCII
        } else {
            value += text_[at_++];
        }
    }
    throw gate_fault(begin, "a literal does not end on its line");
}

/// Resolves one escape sequence.
char32_t Tokens::escape() {
    const auto hex = [&](std::size_t most) {
        char32_t code = 0;
        for (std::size_t i = 0; i < most && at_ < text_.size(); ++i, ++at_) {
            const char c = text_[at_];
            if (std::isxdigit(static_cast<unsigned char>(c)) == 0) break;
            const int value = digit(c) ? c - '0' : std::tolower(static_cast<unsigned char>(c)) - 'a' + 10;
            code = code * 16 + static_cast<char32_t>(value);
        }
        return code;
    };
    ++at_;
    if (at_ >= text_.size() || text_[at_] == '\n') return U'\\';
    const char c = text_[at_];
    if (c >= '0' && c <= '7') {
        char32_t code = 0;
        for (int i = 0; i < 3 && at_ < text_.size() && text_[at_] >= '0' && text_[at_] <= '7'; ++i, ++at_)
            code = code * 8 + static_cast<char32_t>(text_[at_] - '0');
        return code;
    }
    ++at_;
    switch (c) {
    case 'x': return hex(text_.size());
    case 'u': return hex(4);
    case 'U': return hex(8);
    case 'n': return U'\n';
    case 't': return U'\t';
    case 'r': return U'\r';
    case 'a': return U'\a';
    case 'b': return U'\b';
    case 'f': return U'\f';
    case 'v': return U'\v';
    case '\\':
    case '\'':
    case '"':
    case '?': return static_cast<unsigned char>(c);
    default: throw gate_fault(line(), "an escape sequence that not all compilers know");
    }
}

/// From the opening quote to behind the closing one. Splices are undone inside, so it is read from the source.
std::string Tokens::raw_literal() {
    const auto begin = line();
    const auto open = source_.offset[at_];
    const auto bracket = source_.source.find('(', open);
    const auto delimiter = source_.source.substr(open + 1, bracket == std::string_view::npos ? 0 : bracket - open - 1);
    if (bracket == std::string_view::npos || delimiter.size() > 16 ||
        delimiter.find_first_of(" \t\r\n\\\")") != std::string_view::npos)
        throw gate_fault(begin, "a raw string has no proper beginning");
    const auto closing = ")" + std::string(delimiter) + "\"";
    const auto end = source_.source.find(closing, bracket + 1);
    if (end == std::string_view::npos) throw gate_fault(begin, "a raw string does not end");
    const auto value = source_.source.substr(bracket + 1, end - bracket - 1);
    // A reader that skips a region line by line might take such a line for a directive.
    if (value.find('\n') != std::string_view::npos &&
        (value.find('#') != std::string_view::npos || value.find("%:") != std::string_view::npos))
        throw gate_fault(begin, "a raw string over several lines may not hold # or %:");
    const auto after = std::lower_bound(source_.offset.begin(), source_.offset.end(), end + closing.size());
    at_ = static_cast<std::size_t>(std::distance(source_.offset.begin(), after));
    return std::string(value);
}

} // namespace cubridge::runtime
