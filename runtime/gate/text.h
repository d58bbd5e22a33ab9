// A preprocessed text with its brackets; the words of the argument block.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "runtime/compiler/token.h"
#include <set>

namespace cubridge::runtime::gates {

using Names = std::set<std::string, std::less<>>;

/// Tokens, and for each bracket the place of its other half.
struct Text {
    std::vector<Token> tokens;
    std::vector<std::size_t> match;

    /// Throws a Fault ("gate") where brackets don't match, or digraphs stand for them.
    explicit Text(std::vector<Token> all);

    const Token& at(std::size_t i) const { return i < tokens.size() ? tokens[i] : end_; }
    std::string_view word(std::size_t i) const {
        return at(i).kind == Token::Kind::Identifier ? at(i).text : std::string_view();
    }
    bool is(std::size_t i, std::string_view mark) const { return at(i).is(mark); }
    bool opens(std::size_t i) const { return is(i, "(") || is(i, "[") || is(i, "{"); }
    /// Whether a comma stands there, but in brackets or between < and >.
    bool is_list(std::size_t i, std::size_t end) const;
    /// The name before the < that belongs to the > at i, where that may close a template's arguments; else i.
    std::size_t template_name(std::size_t i) const;
    std::size_t line(std::size_t i) const {
        return i < tokens.size() ? tokens[i].line : tokens.empty() ? 1 : tokens.back().line;
    }

private:
    Token end_;
};

/// The definition of the argument block, as it is printed into each kernel: its tokens, its structs, all its words.
const std::vector<Token>& abi_tokens();
const Names& abi_structs();
const Names& abi_words();

} // namespace cubridge::runtime::gates
