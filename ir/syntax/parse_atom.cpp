// Atoms and what follows them: attributes, calls, subscripts, comprehensions.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/format_string.h"
#include "ir/syntax/parser.h"
#include <fmt/format.h>
#include <set>

namespace cubridge::ir::syntax {

Tree Parser::postfix() {
    const Span start = token_.span;
    Tree node = atom();
    for (;;) {
        if (accept(".")) {
            std::string attribute = name("a name after '.'");
            node = make(Kind::Attribute, start, {node});
            node->text = std::move(attribute);
        } else if (op("(")) {
            node = call(std::move(node), start);
        } else if (op("[")) {
            node = subscript(std::move(node), start);
        } else {
            return node;
        }
    }
}

Tree Parser::atom() {
    const auto leaf = [&](Kind kind) {
        Token token = take();
        Tree node = make(kind, token.span);
        if (kind == Kind::Name) node->text = token.text;
        node->integer = token.integer;
        node->real = token.real;
        return node;
    };
    switch (token_.kind) {
    case Token::Kind::Name: return leaf(Kind::Name);
    case Token::Kind::Int: return leaf(Kind::Int);
    case Token::Kind::Float: return leaf(Kind::Float);
    case Token::Kind::String:
    case Token::Kind::FString: return strings();
    default: break;
    }
    if (word("True")) return leaf(Kind::True);
    if (word("False")) return leaf(Kind::False);
    if (word("None")) return leaf(Kind::None);
    if (op("...")) return leaf(Kind::Ellipsis);
    if (op("(")) return parenthesised();
    if (op("[")) return list();
    if (op("{")) return dict();
    unexpected("an expression");
}

/// Adjacent literals are one.
Tree Parser::strings() {
    const auto literal = [&] { return token_.kind == Token::Kind::String || token_.kind == Token::Kind::FString; };
    Token first = take();
    bool format = first.kind == Token::Kind::FString;
    std::string text = std::move(first.value);
    while (literal()) {
        Token next = take();
        if (!format && next.kind == Token::Kind::FString) {
            format = true;
            text = to_format_text(text);
        } else if (format && next.kind == Token::Kind::String) {
            next.value = to_format_text(next.value);
        }
        if (format) {
            join_format_text(text, next.value);
        } else {
            text += next.value;
        }
    }
    Tree node = finish(make(format ? Kind::FString : Kind::String, first.span));
    if (format && format_quotes(text).empty()) {
        unsupported("adjacent f-strings whose quotes do not fit into one literal", node->span,
                    "use the same quotes in all of them");
    }
    node->text = std::move(text);
    return node;
}

Tree Parser::parenthesised() {
    const Nest nest(*this);
    const Token bracket = take();
    if (accept(")")) return finish(make(Kind::Tuple, bracket.span));
    Tree first = element();
    if (word("for") || word("async")) {
        Tree node = comprehension(Kind::Generator, bracket.span, first);
        close(bracket);
        return finish(node);
    }
    if (!op(",")) {
        if (word("as")) {
            unsupported("'as' in parentheses", token_.span, "write 'with a as b, c as d:' without parentheses");
        }
        if (first->kind == Kind::Starred)
            fail("syntax", "a starred expression outside a tuple, list or call", first->span);
        close(bracket);
        return first;
    }
    Tree tuple = make(Kind::Tuple, bracket.span);
    add(*tuple, &Node::items, first);
    while (accept(",") && !op(")")) add(*tuple, &Node::items, element());
    close(bracket);
    return finish(tuple);
}

Tree Parser::list() {
    const Nest nest(*this);
    const Token bracket = take();
    if (accept("]")) return finish(make(Kind::List, bracket.span));
    Tree first = element();
    if (word("for") || word("async")) {
        Tree node = comprehension(Kind::ListComp, bracket.span, first);
        close(bracket);
        return finish(node);
    }
    Tree node = make(Kind::List, bracket.span);
    add(*node, &Node::items, first);
    while (accept(",") && !op("]")) add(*node, &Node::items, element());
    close(bracket);
    return finish(node);
}

Tree Parser::dict() {
    const Nest nest(*this);
    const Token bracket = take();
    Tree node = make(Kind::Dict, bracket.span);
    while (!op("}")) {
        if (op("**")) unsupported("'**' in a dictionary", token_.span, "write the entries");
        add(*node, &Node::items, element());
        if (op(",") || op("}") || word("for")) {
            unsupported("a set", bracket.span, "write a tuple or a list");
        }
        if (node->items.back()->kind == Kind::Starred) unexpected("an expression without '*'");
        if (!accept(":")) unexpected("':' after the key of a dictionary");
        add(*node, &Node::items, expression());
        if (word("for") || word("async")) {
            unsupported("a dictionary comprehension", bracket.span, "write the entries, or a list comprehension");
        }
        if (!accept(",")) break;
    }
    close(bracket);
    return finish(node);
}

Tree Parser::comprehension(Kind kind, Span start, const Tree& element) {
    if (element->kind == Kind::Starred) fail("syntax", "a starred expression in a comprehension", element->span);
    Tree node = make(kind, start);
    add(*node, &Node::items, element);
    while (word("for") || word("async")) {
        refuse_unsupported();
        take();
        count(previous_);
        Clause clause;
        clause.target = keep(*node, targets());
        expect("in", "after the target of 'for'");
        clause.iterable = keep(*node, disjunction());
        while (accept("if")) clause.conditions.push_back(keep(*node, disjunction()));
        node->clauses.push_back(std::move(clause));
    }
    return finish(node);
}

Tree Parser::call(Tree callee, Span start) {
    const Nest nest(*this);
    const Token bracket = take();
    Tree node = make(Kind::Call, start, {callee});
    std::set<std::string_view> seen;
    bool doubled = false; // a **value was seen
    while (!op(")")) {
        const Span at = token_.span;
        if (token_.kind == Token::Kind::Name && peek().op("=")) {
            count(at);
            Keyword keyword;
            const std::string_view text = take().text;
            take();
            if (!seen.insert(text).second) fail("syntax", fmt::format("argument '{}' is given twice", text), at);
            keyword.name = text;
            keyword.value = keep(*node, expression());
            keyword.span = {at.line, at.column, previous_.end_line, previous_.end_column};
            node->keywords.push_back(std::move(keyword));
        } else if (accept("**")) {
            count(at);
            doubled = true;
            Keyword keyword;
            keyword.value = keep(*node, expression());
            keyword.span = {at.line, at.column, previous_.end_line, previous_.end_column};
            node->keywords.push_back(std::move(keyword));
        } else if (accept("*")) {
            if (doubled) fail("syntax", "a '*' argument after a '**' argument", at);
            add(*node, &Node::items, make(Kind::Starred, at, {expression()}));
        } else {
            Tree argument = expression();
            if (word("for") || word("async")) {
                argument = comprehension(Kind::Generator, at, argument);
                if (node->items.size() > 1 || !node->keywords.empty() || op(",")) {
                    fail("syntax", "a generator that is not the only argument needs parentheses", argument->span);
                }
            } else if (!node->keywords.empty()) {
                fail("syntax", "a positional argument after a named one", argument->span, "put it before, or name it");
            }
            add(*node, &Node::items, argument);
        }
        if (!accept(",")) break;
    }
    close(bracket);
    return finish(node);
}

Tree Parser::subscript(Tree object, Span start) {
    const Nest nest(*this);
    const Token bracket = take();
    if (op("]")) unexpected("an index");
    const Span at = token_.span;
    Tree index = slice();
    if (op(",")) {
        Tree tuple = make(Kind::Tuple, at);
        add(*tuple, &Node::items, index);
        while (accept(",") && !op("]")) add(*tuple, &Node::items, slice());
        index = finish(tuple);
    }
    close(bracket);
    return make(Kind::Subscript, start, {object, index});
}

/// An index or one of several: an expression or lower:upper:step.
Tree Parser::slice() {
    const Span start = token_.span;
    if (op("*")) unsupported("a starred expression in an index", start, "write the indices");
    Tree lower = op(":") ? nullptr : expression();
    if (!op(":")) return lower;
    take();
    Tree node = make(Kind::Slice, start);
    const auto part = [&] { return op(":") || op(",") || op("]") ? nullptr : expression(); };
    add(*node, &Node::items, lower);
    add(*node, &Node::items, part());
    add(*node, &Node::items, accept(":") ? part() : nullptr);
    return finish(node);
}

} // namespace cubridge::ir::syntax
