// The outline of a preprocessed text: what it declares where, and in what form. Function bodies are not looked into.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/gate.h"
#include "runtime/compiler/token.h"
#include <map>
#include <set>

namespace cubridge::runtime::gate {

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
    /// The name before the < that belongs to the > at i, where that may close a template's arguments; else i.
    std::size_t template_name(std::size_t i) const;
    std::size_t line(std::size_t i) const {
        return i < tokens.size() ? tokens[i].line : tokens.empty() ? 1 : tokens.back().line;
    }

private:
    Token end_;
};

struct Outline {
    Names types;                            ///< structs, enums, aliases, parameters of templates
    Names callables;                        ///< functions, members
    Names constants;                        ///< of the namespace
    std::vector<bool> judged;               ///< by place: specifiers of declarations whose form is right
    std::size_t abi_begin = 0, abi_end = 0; ///< the definition of the argument block
};

/// Throws a Fault ("gate") where the text declares what it may not: anything but types, functions that run on the
/// device, constants, and the declared kernels, whose only parameter is the argument block.
Outline outline_of(const Text& text, const Declared& declared);

/// The names that the argument block's definition declares, its structs first.
const Names& abi_structs();
const Names& abi_words();

} // namespace cubridge::runtime::gate
