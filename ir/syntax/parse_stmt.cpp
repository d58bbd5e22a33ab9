// The module, blocks, and the statements that have blocks.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/parser.h"
#include <fmt/format.h>

namespace cubridge::ir::syntax {

Tree Parser::module() {
    Tree node = make(Kind::Module, token_.span);
    while (token_.kind != Token::Kind::End) statement(*node, &Node::body);
    return finish(node);
}

void Parser::statement(Grown& owner, List list) {
    if (token_.kind == Token::Kind::Indent) {
        fail("syntax", "this line is indented deeper than the block it stands in", token_.span,
             "align it with the line before");
    }
    if (Tree node = compound()) {
        add(owner, list, node);
    } else {
        simple_line(owner, list);
    }
}

/// A statement with a block, or null if none begins here.
Tree Parser::compound() {
    if (word("if")) return if_statement();
    if (word("while")) return while_statement();
    if (word("for")) return for_statement();
    if (word("with")) return with_statement();
    if (word("def")) return function({}, token_.span);
    if (op("@")) return decorated();
    return nullptr;
}

/// Simple statements between semicolons, and the end of the line.
void Parser::simple_line(Grown& owner, List list) {
    do {
        if (word("elif") || word("else") || word("except") || word("finally")) unexpected("a statement");
        add(owner, list, simple());
    } while (accept(";") && token_.kind != Token::Kind::Newline);
    if (token_.kind != Token::Kind::Newline) unexpected("the end of the statement");
    take();
}

/// ':' and what belongs under it. `after` says what stands before the colon, which began at `start`.
void Parser::block(Grown& owner, List list, std::string_view after, const Span& start) {
    if (!op(":")) {
        refuse_unsupported();
        const std::string hint = token_.kind == Token::Kind::Newline ? "add ':'" : hint_for_found();
        fail("syntax", fmt::format("expected ':' after {}, found {}", after, found()), token_.span, hint);
    }
    take();
    const Nest nest(*this);
    if (token_.kind != Token::Kind::Newline) {
        if (word("if") || word("while") || word("for") || word("with") || word("def") || op("@")) {
            fail("syntax", fmt::format("'{}' on the line of another block's ':'", token_.text), token_.span,
                 "begin a new line and indent it");
        }
        return simple_line(owner, list);
    }
    take();
    if (token_.kind != Token::Kind::Indent) {
        fail("syntax",
             fmt::format("expected an indented block under {} at line {}, found {}", after, start.line, found()),
             token_.span, "indent it, or write 'pass'");
    }
    take();
    do { // at least one: an indented backslash can be all that the block has
        statement(owner, list);
    } while (token_.kind != Token::Kind::Dedent);
    take();
}

void Parser::else_block(Grown& owner) {
    const Span start = token_.span;
    if (accept("else")) block(owner, &Node::orelse, "'else'", start);
}

/// An elif chain is read in a loop and nested afterwards, from its end.
Tree Parser::if_statement() {
    std::vector<Tree> branches;
    do {
        const Token opening = take();
        Tree node = make(Kind::If, opening.span);
        add(*node, &Node::items, expression());
        block(*node, &Node::body, fmt::format("the condition of '{}'", opening.text), opening.span);
        branches.push_back(std::move(node));
    } while (word("elif"));
    else_block(*branches.back());
    for (std::size_t i = branches.size() - 1; i > 0; --i) {
        finish(branches[i]);
        add(*branches[i - 1], &Node::orelse, branches[i]);
    }
    return finish(branches.front());
}

Tree Parser::while_statement() {
    const Span start = take().span;
    Tree node = make(Kind::While, start);
    add(*node, &Node::items, expression());
    block(*node, &Node::body, "the condition of 'while'", start);
    else_block(*node);
    return finish(node);
}

Tree Parser::for_statement() {
    const Span start = take().span;
    Tree node = make(Kind::For, start);
    add(*node, &Node::items, targets());
    expect("in", "after the target of 'for'");
    add(*node, &Node::items, expressions());
    block(*node, &Node::body, "what 'for' walks over", start);
    else_block(*node);
    return finish(node);
}

Tree Parser::with_statement() {
    const Span start = take().span;
    Tree node = make(Kind::With, start);
    do {
        add(*node, &Node::items, expression());
        node->names.emplace_back();
        if (!accept("as")) continue;
        const Span at = token_.span;
        node->names.back() = name("a name after 'as'");
        if (op(".") || op("[") || op("(")) {
            unsupported("'as' with anything but a name", at, "bind a name");
        }
    } while (accept(","));
    block(*node, &Node::body, "what 'with' enters", start);
    return finish(node);
}

Tree Parser::decorated() {
    const Span start = token_.span;
    std::vector<Tree> decorators;
    while (accept("@")) {
        decorators.push_back(expression());
        if (token_.kind != Token::Kind::Newline) unexpected("the end of the line after a decorator");
        take();
    }
    if (!word("def")) unexpected("'def' after a decorator");
    return function(std::move(decorators), start);
}

Tree Parser::function(std::vector<Tree> decorators, Span start) {
    const Span at = take().span;
    Tree node = make(Kind::FunctionDef, start);
    for (const Tree& decorator : decorators) add(*node, &Node::decorators, decorator);
    node->text = name("a function's name after 'def'");
    if (op("[")) unsupported("type parameters", token_.span, "leave them out");
    if (!op("(")) unexpected("'(' after a function's name");
    const Token bracket = take();
    params(*node, ")");
    close(bracket);
    add(*node, &Node::items, accept("->") ? expression() : nullptr);
    block(*node, &Node::body, "the head of a function", at);
    return finish(node);
}

} // namespace cubridge::ir::syntax
