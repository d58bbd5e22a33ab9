// Expressions with as few parentheses as their meaning allows.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/printer.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir::syntax {
namespace {

Tightness of_binary(std::string_view operation) {
    if (operation == "**") return Tightness::Power;
    if (operation == "|") return Tightness::BitOr;
    if (operation == "^") return Tightness::BitXor;
    if (operation == "&") return Tightness::BitAnd;
    if (operation == "<<" || operation == ">>") return Tightness::Shift;
    if (operation == "+" || operation == "-") return Tightness::Sum;
    return Tightness::Product;
}

Tightness tightness(const Node& node) {
    switch (node.kind) {
    case Kind::Tuple: return node.items.empty() ? Tightness::Atom : Tightness::Tuple;
    case Kind::Starred: return Tightness::Test;
    case Kind::Conditional:
    case Kind::Lambda: return Tightness::Test;
    case Kind::BoolOp: return node.text == "or" ? Tightness::Or : Tightness::And;
    case Kind::Compare: return Tightness::Compare;
    case Kind::Unary: return node.text == "not" ? Tightness::Not : Tightness::Unary;
    case Kind::Binary: return of_binary(node.text);
    case Kind::Int: return node.integer < 0 ? Tightness::Unary : Tightness::Atom;
    case Kind::Float: return std::signbit(node.real) ? Tightness::Unary : Tightness::Atom;
    case Kind::Attribute:
    case Kind::Call:
    case Kind::Subscript: return Tightness::Postfix;
    default: return Tightness::Atom;
    }
}

Tightness above(Tightness one) {
    return static_cast<Tightness>(static_cast<int>(one) + 1);
}

} // namespace

void Printer::expression(const Node& node, Tightness least) {
    const bool parentheses = tightness(node) < least;
    if (parentheses) put("(");
    plain(node);
    if (parentheses) put(")");
}

void Printer::bare(const Node& node) {
    expression(node, node.kind == Kind::Tuple && node.items.size() > 1 ? Tightness::Tuple : Tightness::Test);
}

void Printer::plain(const Node& node) {
    switch (node.kind) {
    case Kind::Name: return put(node.text);
    case Kind::Int: return integer(node.integer);
    case Kind::Float: return real(node.real);
    case Kind::String:
    case Kind::FString: return string(node);
    case Kind::True: return put("True");
    case Kind::False: return put("False");
    case Kind::None: return put("None");
    case Kind::Ellipsis: return put("...");
    case Kind::Tuple: return tuple(node);
    case Kind::List:
        put("[");
        commas(node.items);
        return put("]");
    case Kind::Attribute:
    case Kind::Call:
    case Kind::Subscript: return postfix(node);
    case Kind::Slice: return slice(node);
    case Kind::Lambda:
        put(node.params.empty() ? "lambda" : "lambda ");
        params(node.params);
        put(": ");
        return expression(*node.items[0], Tightness::Test);
    case Kind::Starred: put("*"); return expression(*node.items[0], Tightness::BitOr);
    case Kind::ListComp:
        put("[");
        comprehension(node);
        return put("]");
    case Kind::Generator:
        put("(");
        comprehension(node);
        return put(")");
    case Kind::Dict: return dict(node);
    default: return infix(node);
    }
}

/// Operators.
void Printer::infix(const Node& node) {
    const Tightness own = tightness(node);
    switch (node.kind) {
    case Kind::Unary:
        put(node.text);
        if (node.text == "not") put(" ");
        return expression(*node.items[0], own);
    case Kind::Binary:
        // "**" takes the tightest on its left and any unary on its right.
        expression(*node.items[0], own == Tightness::Power ? Tightness::Postfix : own);
        put(" " + node.text + " ");
        return expression(*node.items[1], own == Tightness::Power ? Tightness::Unary : above(own));
    case Kind::BoolOp:
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            if (i > 0) put(" " + node.text + " ");
            expression(*node.items[i], above(own));
        }
        return;
    case Kind::Compare:
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            if (i > 0) put(" " + node.names[i - 1] + " ");
            expression(*node.items[i], Tightness::BitOr);
        }
        return;
    case Kind::Conditional:
        expression(*node.items[0], Tightness::Or);
        put(" if ");
        expression(*node.items[1], Tightness::Or);
        put(" else ");
        return expression(*node.items[2], Tightness::Test);
    default: return; // statements are no expressions
    }
}

void Printer::commas(const std::vector<NodePtr>& items, std::size_t from) {
    for (std::size_t i = from; i < items.size(); ++i) {
        if (i > from) put(", ");
        expression(*items[i], Tightness::Test);
    }
}

void Printer::tuple(const Node& node) {
    if (node.items.empty()) return put("()");
    commas(node.items);
    if (node.items.size() == 1) put(",");
}

void Printer::dict(const Node& node) {
    put("{");
    for (std::size_t i = 0; i + 1 < node.items.size(); i += 2) {
        if (i > 0) put(", ");
        expression(*node.items[i], Tightness::Test);
        put(": ");
        expression(*node.items[i + 1], Tightness::Test);
    }
    put("}");
}

void Printer::postfix(const Node& node) {
    const Node& object = *node.items[0];
    // `1.real` would be a number.
    const bool number = object.kind == Kind::Int || object.kind == Kind::Float;
    if (number) put("(");
    expression(object, number ? Tightness::Test : Tightness::Postfix);
    if (number) put(")");
    if (node.kind == Kind::Attribute) {
        put("." + node.text);
    } else if (node.kind == Kind::Call) {
        arguments(node);
    } else {
        put("[");
        index(*node.items[1]);
        put("]");
    }
}

void Printer::arguments(const Node& node) {
    if (node.items.size() == 2 && node.keywords.empty() && node.items[1]->kind == Kind::Generator) {
        return plain(*node.items[1]);
    }
    put("(");
    commas(node.items, 1);
    for (std::size_t i = 0; i < node.keywords.size(); ++i) {
        const Keyword& keyword = node.keywords[i];
        if (i > 0 || node.items.size() > 1) put(", ");
        put(keyword.name.empty() ? "**" : keyword.name + "=");
        expression(*keyword.value, Tightness::Test);
    }
    put(")");
}

void Printer::index(const Node& node) {
    const auto starred = [](const NodePtr& item) { return item->kind == Kind::Starred; };
    const bool bare = node.kind == Kind::Tuple && std::none_of(node.items.begin(), node.items.end(), starred);
    expression(node, bare ? Tightness::Tuple : Tightness::Test);
}

void Printer::slice(const Node& node) {
    if (node.items[0]) expression(*node.items[0], Tightness::Test);
    put(":");
    if (node.items[1]) expression(*node.items[1], Tightness::Test);
    if (!node.items[2]) return;
    put(":");
    expression(*node.items[2], Tightness::Test);
}

void Printer::comprehension(const Node& node) {
    expression(*node.items[0], Tightness::Test);
    for (const Clause& clause : node.clauses) {
        put(" for ");
        bare(*clause.target);
        put(" in ");
        expression(*clause.iterable, Tightness::Or);
        for (const NodePtr& condition : clause.conditions) {
            put(" if ");
            expression(*condition, Tightness::Or);
        }
    }
}

void Printer::params(const std::vector<Param>& params) {
    using Form = Param::Form;
    for (std::size_t i = 0; i < params.size(); ++i) {
        const Param& param = params[i];
        if (i > 0) put(", ");
        if (param.form == Form::Bar || param.form == Form::Star) put("*");
        if (param.form == Form::StarStar) put("**");
        put(param.form == Form::Slash ? "/" : param.name);
        if (param.annotation) {
            put(": ");
            expression(*param.annotation, Tightness::Test);
        }
        if (param.fallback) {
            put(param.annotation ? " = " : "=");
            expression(*param.fallback, Tightness::Test);
        }
    }
}

} // namespace cubridge::ir::syntax
