// Statements that stand on one line.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/parser.h"
#include <algorithm>
#include <array>
#include <fmt/format.h>

namespace cubridge::ir::syntax {

Tree Parser::simple() {
    const Span start = token_.span;
    const auto ends = [&] { return token_.kind == Token::Kind::Newline || op(";"); };
    if (accept("pass")) return make(Kind::Pass, start);
    if (accept("break")) return make(Kind::Break, start);
    if (accept("continue")) return make(Kind::Continue, start);
    if (accept("return")) return make(Kind::Return, start, {ends() ? nullptr : expressions()});
    if (word("raise")) return raise_statement();
    if (word("assert")) return assert_statement();
    if (word("import")) return import_statement();
    if (word("from")) return import_from();
    if (accept("global")) {
        Tree node = make(Kind::Global, start);
        do {
            count(token_.span);
            node->names.push_back(name("a name"));
        } while (accept(","));
        return finish(node);
    }
    if (accept("del")) {
        Tree node = make(Kind::Delete, start);
        do {
            Tree target = binary(1);
            check_target(*target);
            add(*node, &Node::items, target);
        } while (accept(",") && !ends());
        return finish(node);
    }
    return expression_statement();
}

Tree Parser::expression_statement() {
    const Span start = token_.span;
    if (token_.kind == Token::Kind::Name) refuse_soft_keyword(token_);
    Tree first = element();
    if (op(",")) {
        Tree tuple = make(Kind::Tuple, start);
        add(*tuple, &Node::items, first);
        while (accept(",") && begins_expression()) add(*tuple, &Node::items, element());
        first = finish(tuple);
    }
    constexpr std::array<std::string_view, 13> augmented = {
        "+=", "-=", "*=", "/=", "//=", "%=", "@=", "&=", "|=", "^=", ">>=", "<<=", "**="};
    if (op("=")) return assignment(std::move(first), start);
    if (first->kind == Kind::Starred) check_target(*first);
    if (token_.kind == Token::Kind::Op &&
        std::find(augmented.begin(), augmented.end(), token_.text) != augmented.end()) {
        check_single_target(*first, fmt::format("'{}'", token_.text));
        const std::string_view spelling = take().text;
        Tree node = make(Kind::AugAssign, start, {first, expressions()});
        node->text = spelling.substr(0, spelling.size() - 1);
        return node;
    }
    if (op(":")) {
        check_single_target(*first, "an annotation");
        take();
        Tree annotation = expression();
        Tree value = accept("=") ? expressions() : nullptr;
        return make(Kind::AnnAssign, start, {first, annotation, value});
    }
    return make(Kind::ExprStmt, start, {first});
}

/// a = b = value; the first target was read.
Tree Parser::assignment(Tree first, Span start) {
    Tree node = make(Kind::Assign, start);
    Tree last = std::move(first);
    while (op("=")) {
        check_target(*last);
        add(*node, &Node::items, last);
        take();
        const Span at = token_.span;
        last = element();
        if (op(",")) {
            Tree tuple = make(Kind::Tuple, at);
            add(*tuple, &Node::items, last);
            while (accept(",") && begins_expression()) add(*tuple, &Node::items, element());
            last = finish(tuple);
        }
    }
    if (last->kind == Kind::Starred) fail("syntax", "a starred expression outside a tuple, list or call", last->span);
    add(*node, &Node::items, last);
    return finish(node);
}

/// `match x:` and `type X = ...`: words that are names everywhere else.
void Parser::refuse_soft_keyword(const Token& first) {
    if (first.text != "match" && first.text != "type") return;
    const Token& next = peek();
    const bool operand = next.kind == Token::Kind::Name || next.kind == Token::Kind::Int ||
                         next.kind == Token::Kind::Float || next.kind == Token::Kind::String;
    if (!operand) return;
    unsupported(fmt::format("a '{}' statement", first.text), first.span,
                first.text == "match" ? "write 'if' and 'elif'" : "assign to a name");
}

Tree Parser::raise_statement() {
    const Span start = take().span;
    const bool bare = token_.kind == Token::Kind::Newline || op(";");
    Tree node = make(Kind::Raise, start, {bare ? nullptr : expression()});
    if (word("from")) unsupported("'raise ... from'", token_.span, "leave out what stands after 'from'");
    return node;
}

Tree Parser::assert_statement() {
    const Span start = take().span;
    Tree condition = expression();
    return make(Kind::Assert, start, {condition, accept(",") ? expression() : nullptr});
}

std::string Parser::dotted_name() {
    std::string path = name("a module's name");
    while (accept(".")) path += "." + name("a name after '.'");
    return path;
}

void Parser::import_name(Grown& node, bool dotted) {
    count(token_.span);
    node.names.push_back(dotted ? dotted_name() : name("a name to import"));
    node.aliases.push_back(accept("as") ? name("a name after 'as'") : std::string());
}

Tree Parser::import_statement() {
    Tree node = make(Kind::Import, take().span);
    do {
        import_name(*node, true);
    } while (accept(","));
    return finish(node);
}

Tree Parser::import_from() {
    Tree node = make(Kind::ImportFrom, take().span);
    if (op(".") || op("...")) {
        unsupported("a relative import", token_.span, "write what it would import into this text");
    }
    node->text = dotted_name();
    expect("import", "after the module's name");
    if (accept("*")) {
        node->names.emplace_back("*");
        node->aliases.emplace_back();
        return finish(node);
    }
    if (!op("(")) {
        do {
            import_name(*node, false);
        } while (accept(","));
        return finish(node);
    }
    const Token bracket = take();
    do {
        import_name(*node, false);
    } while (accept(",") && !op(")"));
    close(bracket);
    return finish(node);
}

} // namespace cubridge::ir::syntax
