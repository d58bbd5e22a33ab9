// Inside the room: the printer's state. Others use ast.h.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/syntax/ast.h"

namespace cubridge::ir::syntax {

/// How tightly an expression holds together, loosest first.
enum class Tightness {
    Tuple,
    Test,
    Or,
    And,
    Not,
    Compare,
    BitOr,
    BitXor,
    BitAnd,
    Shift,
    Sum,
    Product,
    Unary,
    Power,
    Postfix,
    Atom
};

class Printer {
public:
    void statement(const Node& node);
    void block(const std::vector<NodePtr>& statements);
    /// In parentheses if it holds together less tightly than `least`.
    void expression(const Node& node, Tightness least);
    /// A tuple of two or more without parentheses.
    void bare(const Node& node);
    std::string take() { return std::move(out_); }

private:
    void plain(const Node& node);
    void infix(const Node& node);
    void commas(const std::vector<NodePtr>& items, std::size_t from = 0);
    void tuple(const Node& node);
    void dict(const Node& node);
    void postfix(const Node& node);
    void arguments(const Node& node);
    void index(const Node& node);
    void slice(const Node& node);
    void comprehension(const Node& node);
    void params(const std::vector<Param>& params);
    void integer(std::int64_t value);
    void real(double value);
    void string(const Node& node);
    void quoted(std::string_view text);

    void head(const Node& node);
    void branches(const Node& node);
    void function(const Node& node);
    void suite(const std::vector<NodePtr>& body);
    void names(const std::vector<std::string>& names, const std::vector<std::string>& aliases);
    void line() { out_.append(indent_ * 4, ' '); }
    void put(std::string_view text) { out_ += text; }

    std::string out_;
    std::size_t indent_ = 0;
};

} // namespace cubridge::ir::syntax
