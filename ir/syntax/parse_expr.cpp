// Expressions from the loosest operator to the tightest. See "Full Grammar specification" of the Python reference.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/parser.h"
#include <algorithm>
#include <array>

namespace cubridge::ir::syntax {
namespace {

/// How tightly a binary operator binds; 0 for what is none. "**" is not among them: it binds to the right.
int tightness(const Token& token) {
    if (token.kind != Token::Kind::Op) return 0;
    const std::string_view text = token.text;
    if (text == "|") return 1;
    if (text == "^") return 2;
    if (text == "&") return 3;
    if (text == "<<" || text == ">>") return 4;
    if (text == "+" || text == "-") return 5;
    if (text == "*" || text == "/" || text == "//" || text == "%" || text == "@") return 6;
    return 0;
}

} // namespace

bool Parser::begins_expression() const {
    switch (token_.kind) {
    case Token::Kind::Name:
    case Token::Kind::Int:
    case Token::Kind::Float:
    case Token::Kind::String:
    case Token::Kind::FString: return true;
    case Token::Kind::Keyword: {
        constexpr std::array<std::string_view, 7> words = {"not", "lambda", "True", "False", "None", "await", "yield"};
        return std::find(words.begin(), words.end(), token_.text) != words.end();
    }
    case Token::Kind::Op: {
        constexpr std::array<std::string_view, 8> marks = {"(", "[", "{", "-", "+", "~", "*", "..."};
        return std::find(marks.begin(), marks.end(), token_.text) != marks.end();
    }
    default: return false;
    }
}

/// One expression, or a tuple without parentheses.
Tree Parser::expressions() {
    const Span start = token_.span;
    Tree first = element();
    if (!op(",")) {
        if (first->kind == Kind::Starred)
            fail("syntax", "a starred expression outside a tuple, list or call", first->span);
        return first;
    }
    Tree tuple = make(Kind::Tuple, start);
    add(*tuple, &Node::items, first);
    while (accept(",") && begins_expression()) add(*tuple, &Node::items, element());
    return finish(tuple);
}

/// An element of a tuple or list.
Tree Parser::element() {
    if (!op("*")) return expression();
    const Span start = take().span;
    return make(Kind::Starred, start, {binary(1)});
}

Tree Parser::expression() {
    const Span start = token_.span;
    if (word("lambda")) return lambda();
    Tree value = disjunction();
    if (!accept("if")) return value;
    Tree condition = disjunction();
    expect("else", "and the other value of a conditional expression");
    const Nest nest(*this);
    return make(Kind::Conditional, start, {value, condition, expression()});
}

Tree Parser::lambda() {
    const Nest nest(*this);
    Tree node = make(Kind::Lambda, take().span);
    params(*node, ":");
    expect(":", "after the parameters of a lambda");
    add(*node, &Node::items, expression());
    return finish(node);
}

Tree Parser::bool_op(std::string_view spelling) {
    const auto operand = [&] { return spelling == "or" ? bool_op("and") : inversion(); };
    const Span start = token_.span;
    Tree first = operand();
    if (!word(spelling)) return first;
    Tree node = make(Kind::BoolOp, start);
    node->text = spelling;
    add(*node, &Node::items, first);
    while (accept(spelling)) add(*node, &Node::items, operand());
    return finish(node);
}

Tree Parser::inversion() {
    if (!word("not")) return comparison();
    const Nest nest(*this);
    const Span start = take().span;
    Tree node = make(Kind::Unary, start, {inversion()});
    node->text = "not";
    return node;
}

Tree Parser::comparison() {
    const Span start = token_.span;
    Tree first = binary(1);
    std::string comparison = comparator();
    if (comparison.empty()) return first;
    Tree node = make(Kind::Compare, start);
    add(*node, &Node::items, first);
    for (; !comparison.empty(); comparison = comparator()) {
        count(previous_);
        node->names.push_back(std::move(comparison));
        add(*node, &Node::items, binary(1));
    }
    return finish(node);
}

/// Takes a comparison operator; empty where there is none.
std::string Parser::comparator() {
    constexpr std::array<std::string_view, 6> marks = {"<", "<=", ">", ">=", "==", "!="};
    if (token_.kind == Token::Kind::Op && std::find(marks.begin(), marks.end(), token_.text) != marks.end()) {
        return std::string(take().text);
    }
    if (accept("in")) return "in";
    if (word("not") && peek().word("in")) {
        take();
        take();
        return "not in";
    }
    if (accept("is")) return accept("not") ? "is not" : "is";
    return {};
}

/// Operators at least as tight as `loosest`, to the left.
Tree Parser::binary(int loosest) {
    const Span start = token_.span;
    Tree left = unary();
    for (;;) {
        const int here = tightness(token_);
        if (here == 0 || here < loosest) return left;
        const Token operation = take();
        Tree right = binary(here + 1);
        left = make(Kind::Binary, start, {left, right});
        left->text = operation.text;
    }
}

Tree Parser::unary() {
    if (!op("-") && !op("+") && !op("~")) return power();
    const Nest nest(*this);
    const Token operation = take();
    Tree node = make(Kind::Unary, operation.span, {unary()});
    node->text = operation.text;
    return node;
}

Tree Parser::power() {
    const Span start = token_.span;
    Tree base = postfix();
    if (!op("**")) return base;
    const Nest nest(*this);
    take();
    Tree node = make(Kind::Binary, start, {base, unary()});
    node->text = "**";
    return node;
}

} // namespace cubridge::ir::syntax
