// The parser: recursive descent, one function a construct of Python's grammar. Inside the room; others use ast.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/syntax/ast.h"
#include "ir/syntax/lexer.h"
#include <optional>
#include <string>
#include <string_view>

namespace cubridge::ir::syntax {

/// A node under construction, which knows how high the tree under it is.
struct Grown : Node {
    int height = 1;
};
using Tree = std::shared_ptr<Grown>;
using List = std::vector<NodePtr> Node::*;

class Parser {
public:
    /// Borrows both. Fails (error.h) like every member below.
    Parser(std::string_view source, const Limits& limits);
    Tree module();

private:
    // --- tokens
    Token take();
    const Token& peek();
    bool op(std::string_view spelling) const { return token_.op(spelling); }
    bool word(std::string_view spelling) const { return token_.word(spelling); }
    bool accept(std::string_view spelling); ///< an operator or a keyword
    void expect(std::string_view spelling, std::string_view where);
    std::string name(std::string_view what);
    [[noreturn]] void unexpected(std::string_view wanted);
    std::string found() const;
    std::string hint_for_found() const;
    void refuse_unsupported() const;

    // --- nodes
    Tree make(Kind kind, Span start);
    Tree make(Kind kind, Span start, std::initializer_list<Tree> items);
    Tree finish(Tree node) const;
    NodePtr keep(Grown& parent, const Tree& child);
    void add(Grown& parent, List list, const Tree& child) { (parent.*list).push_back(keep(parent, child)); }
    void count(const Span& span);
    void close(const Token& bracket);

    /// One more level of nesting while it lives. Every cycle of calls passes through one: brackets, blocks, `lambda`,
    /// `else` of a conditional, and the operators that bind to the right.
    class Nest {
    public:
        explicit Nest(Parser& parser);
        ~Nest() { --parser_.depth_; }
        Nest(const Nest&) = delete;
        Nest& operator=(const Nest&) = delete;

    private:
        Parser& parser_;
    };

    // --- expressions, loosest first
    Tree expressions();
    Tree element();
    Tree expression();
    Tree lambda();
    Tree disjunction() { return bool_op("or"); }
    Tree bool_op(std::string_view spelling);
    Tree inversion();
    Tree comparison();
    std::string comparator();
    Tree binary(int loosest);
    Tree unary();
    Tree power();
    Tree postfix();
    Tree atom();
    Tree strings();
    Tree parenthesised();
    Tree list();
    Tree dict();
    Tree call(Tree callee, Span start);
    Tree subscript(Tree object, Span start);
    Tree slice();
    Tree comprehension(Kind kind, Span start, const Tree& element);
    bool begins_expression() const;
    void params(Grown& owner, std::string_view end);
    Param param(Grown& owner, bool annotated);

    // --- targets
    Tree targets();
    void check_target(const Node& node, bool inside = false) const;
    void check_single_target(const Node& node, std::string_view what) const;

    // --- statements
    void statement(Grown& owner, List list);
    void simple_line(Grown& owner, List list);
    void block(Grown& owner, List list, std::string_view after, const Span& start);
    void else_block(Grown& owner);
    Tree simple();
    Tree compound();
    Tree expression_statement();
    Tree assignment(Tree first, Span start);
    Tree if_statement();
    Tree while_statement();
    Tree for_statement();
    Tree with_statement();
    Tree function(std::vector<Tree> decorators, Span start);
    Tree decorated();
    Tree raise_statement();
    Tree assert_statement();
    Tree import_statement();
    Tree import_from();
    void import_name(Grown& node, bool dotted);
    std::string dotted_name();
    void refuse_soft_keyword(const Token& first);

    const Limits& limits_;
    Lexer lexer_;
    Token token_;
    std::optional<Token> ahead_;
    Span previous_{1, 1, 1, 1}; ///< of the last token taken that has a text
    std::string_view before_;   ///< its text
    std::string_view earlier_;  ///< that of the one before
    std::size_t nodes_ = 0;
    int depth_ = 0;
};

} // namespace cubridge::ir::syntax
