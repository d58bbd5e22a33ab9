// Types of expressions, and what else is known of them without printing. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/ops.h"
#include "ir/lower/expression.h"
#include <algorithm>

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;

namespace {

const OpInfo* operator_named(const std::string& name) {
    for (const auto& op : all_ops())
        if (name == op.name && *op.torch != 0) return &op;
    return nullptr;
}

Type with(Type type, Elem elem, bool natural = false) {
    if (!type.known()) return type;
    type.elem = elem;
    type.natural = natural;
    type.storage = false;
    return type;
}

/// As a value: numbers of rows and columns are rows and columns of numbers.
Type value(const Type& type, Span span) {
    return type.known() ? meet(type, scalar(Elem::Bool, true), span) : type;
}

void collect(const Node& node, std::vector<std::string>& out) {
    if (node.kind == Kind::Name && std::find(out.begin(), out.end(), node.text) == out.end()) out.push_back(node.text);
    for (std::size_t k = node.kind == Kind::Call && node.items[0]->kind == Kind::Name ? 1 : 0; k < node.items.size();
         ++k)
        if (node.items[k]) collect(*node.items[k], out);
    for (const auto& k : node.keywords) collect(*k.value, out);
}

} // namespace

std::vector<std::string> names_in(const Node& node) {
    std::vector<std::string> out;
    collect(node, out);
    return out;
}

std::vector<NodePtr> parts(const NodePtr& node) {
    if (node->kind == Kind::Tuple) return node->items;
    return {node};
}

std::string callee(const Node& node) {
    return node.kind == Kind::Call && node.items[0]->kind == Kind::Name ? node.items[0]->text : "";
}

std::optional<std::int64_t> known_int(const Node& node, const std::map<std::string, std::int64_t>& values) {
    if (node.kind == Kind::Int) return node.integer;
    if (node.kind == Kind::Name) {
        const auto it = values.find(node.text);
        return it == values.end() ? std::nullopt : std::optional(it->second);
    }
    std::vector<std::int64_t> x;
    for (std::size_t k = node.kind == Kind::Call ? 1 : 0; k < node.items.size(); ++k) {
        if (!node.items[k]) return std::nullopt;
        const auto v = known_int(*node.items[k], values);
        if (!v || *v > (std::int64_t{1} << 31) || *v < -(std::int64_t{1} << 31)) return std::nullopt;
        x.push_back(*v);
    }
    const auto div = info(Op::FloorDiv).integer;
    if (node.kind == Kind::Unary && node.text == "-") return -x[0];
    if (node.kind == Kind::Call) {
        const auto name = callee(node);
        if (x.size() == 2 && name == "minimum") return std::min(x[0], x[1]);
        if (x.size() == 2 && name == "maximum") return std::max(x[0], x[1]);
        if (x.size() == 2 && name == "cdiv" && x[1] > 0) {
            x[0] = x[0] + x[1] - 1;
            return div(x.data());
        }
        return std::nullopt;
    }
    if (node.kind != Kind::Binary) return std::nullopt;
    if (node.text == "+") return x[0] + x[1];
    if (node.text == "-") return x[0] - x[1];
    if (node.text == "*") return x[0] * x[1];
    if (node.text == "//" && x[1] != 0) return div(x.data());
    if (node.text == "%" && x[1] != 0) return info(Op::Mod).integer(x.data());
    return std::nullopt;
}

Type Expressions::type(const Node& node) const {
    switch (node.kind) {
    case Kind::Int: return scalar(Elem::Int, node.integer >= 0);
    case Kind::Float: return scalar(Elem::Real);
    case Kind::True:
    case Kind::False: return scalar(Elem::Bool, true);
    case Kind::Name: {
        if (const Variable* v = scope_.find(node.text)) return v->type;
        if (node.text == "inf" || node.text == "LOG2E" || node.text == "LN2") return scalar(Elem::Real);
        fail("no_rule", "nothing is named `" + node.text + "` here", node.span);
    }
    case Kind::Unary: {
        const Type t = value(type(*node.items[0]), node.span);
        if (node.text == "not") return with(t, Elem::Bool, true);
        if (node.text == "~") return with(t, t.elem, t.elem == Elem::Bool);
        return with(t, std::max(t.elem, Elem::Int), node.text == "+" && t.natural);
    }
    case Kind::Binary: return binary_type(node);
    case Kind::BoolOp: {
        for (const auto& i : node.items)
            if (const Type t = type(*i); t.known() && t.form != Form::Scalar)
                fail("no_rule", "`" + node.text + "` is for scalars", node.span, "write `&`, `|` or `~`");
        return scalar(Elem::Bool, true);
    }
    case Kind::Compare: {
        Type t = type(*node.items[0]);
        for (const auto& i : node.items) t = meet(t, type(*i), node.span);
        return with(t, Elem::Bool, true);
    }
    case Kind::Conditional: {
        const Type c = type(*node.items[1]);
        if (c.known() && c.form != Form::Scalar)
            fail("no_rule", "the condition of a conditional expression is a scalar", node.span, "write where(...)");
        return meet(type(*node.items[0]), type(*node.items[2]), node.span);
    }
    case Kind::Call: return call_type(node);
    case Kind::Subscript: return index_type(node);
    default: fail("no_rule", "`" + syntax::print(node) + "` has no value that a rule can print", node.span);
    }
}

Type Expressions::binary_type(const Node& node) const {
    const Type a = type(*node.items[0]), b = type(*node.items[1]);
    const Type t = meet(a, b, node.span);
    const std::string& op = node.text;
    if (op == "/") return with(t, Elem::Real);
    if (op == "&" || op == "|" || op == "^") {
        if (t.known() && t.elem == Elem::Real) fail("no_rule", "`" + op + "` of reals", node.span);
        return with(t, t.elem, op == "&" ? a.natural || b.natural : t.natural);
    }
    const Elem e = std::max(t.elem, Elem::Int);
    if (op == "+" || op == "*" || op == "//") return with(t, e, t.natural);
    if (op == "-") return with(t, e);
    if (op == "%") return with(t, e, b.natural);
    fail("no_rule", "`" + op + "` is no operator of CuIR", node.span);
}

Type Expressions::index_type(const Node& node) const {
    const Node& object = *node.items[0];
    if (object.kind == Kind::Attribute && object.text == "shape") return scalar(Elem::Int, true);
    Type t = type(object);
    const auto at = parts(node.items[1]);
    switch (t.form) {
    case Form::Unknown: return t;
    case Form::Cells: {
        if (at.size() > t.extents.size()) fail("no_rule", "more indices than the storage has cells", node.span);
        Type cells = t;
        cells.extents.erase(cells.extents.begin(), cells.extents.begin() + static_cast<std::ptrdiff_t>(at.size()));
        return cells;
    }
    case Form::Phases:
    case Form::Barrier: {
        if (at.size() != 1 || t.extents.empty()) fail("no_rule", "an array of barriers has one index", node.span);
        Type one = t;
        one.extents.clear();
        return one;
    }
    case Form::CellColumns: {
        Type out = scalar(elem_of(t.element, node.span));
        out.form = Form::Column;
        out.columns = t.columns;
        return out;
    }
    case Form::Tensor:
    case Form::Operand:
    case Form::Work: {
        if (at.size() != t.extents.size())
            fail("no_rule", "`" + object.text + "` has " + std::to_string(t.extents.size()) + " axes", node.span);
        Type out = scalar(Elem::Bool, true);
        for (const auto& i : at) {
            if (i->kind == Kind::Slice) fail("no_rule", "a slice is no value", node.span);
            const Type x = type(*i);
            if (x.known() && x.elem == Elem::Real) fail("no_rule", "an index is an integer", i->span);
            out = meet(out, x, i->span);
        }
        return with(out, elem_of(t.element, node.span));
    }
    default: fail("no_rule", "`" + syntax::print(object) + "` has no elements that a rule reads", node.span);
    }
}

Type Expressions::call_type(const Node& node) const {
    const auto arg = [&](std::size_t k) {
        if (node.items.size() <= k + 1) fail("no_rule", "too few arguments", node.span);
        return type(*node.items[k + 1]);
    };
    if (node.items[0]->kind == Kind::Attribute) {
        const Node& method = *node.items[0];
        if (method.items[0]->kind == Kind::Name && method.items[0]->text == "f32") {
            const OpInfo* op = operator_named(method.text);
            if (op == nullptr) fail("no_rule", "`f32." + method.text + "` is no operator", node.span);
            Type t = value(arg(0), node.span);
            for (std::size_t k = 1; k + 1 < node.items.size(); ++k) t = meet(t, arg(k), node.span);
            return with(t, op->bool_out ? Elem::Bool : Elem::Real, op->bool_out);
        }
        Type t = type(*method.items[0]);
        if (method.text != "amax" && method.text != "sum")
            fail("no_rule", "`." + method.text + "` is no method of a tile", node.span);
        if (!t.known()) return t;
        if (t.form != Form::Tile) fail("no_rule", "`." + method.text + "` is for tiles", node.span);
        Type out = scalar(Elem::Real);
        out.form = Form::Row;
        return out;
    }
    const std::string name = callee(node);
    if (const Def* def = scope_.find_def(name)) {
        if (def->types.empty()) return {};
        if (!def->by_value) fail("no_rule", "what `" + name + "` returns has to be assigned to names", node.span);
        Type t = def->types[0];
        if (t.form == Form::Ranges) t.element = name;
        return t;
    }
    if ((name == "full" && node.items.size() == 3 && syntax::print(*node.items[1]) != "R") ||
        (name == "rows" && node.items.size() == 3 && syntax::print(*node.items[2]) != "R"))
        fail("no_rule", "the rows of an agent are named R", node.span);
    if (name == "full") {
        Type t = value(arg(1), node.span);
        if (t.known()) t.form = Form::Row;
        return t;
    }
    if (name == "rows" || name == "cols") {
        if (!arg(0).known()) return {};
        Type t = scalar(Elem::Int, arg(0).natural);
        t.form = name == "rows" ? Form::Rows : Form::Cols;
        arg(1);
        if (name == "cols") t.columns = print(*node.items[2]);
        return t;
    }
    if (name == "length") {
        if (const Form f = arg(0).form; f != Form::Ranges && f != Form::Unknown)
            fail("no_rule", "length() is of key ranges", node.span);
        return scalar(Elem::Int, true);
    }
    if (name == "classify") {
        if (node.items.size() < 3 || scope_.find_def(node.items[2]->text) == nullptr)
            fail("no_rule", "classify(count, def, ...)", node.span);
        Type t;
        t.form = Form::Ranges;
        return t;
    }
    if (name == "any") {
        const Type t = arg(0);
        if (t.known() && (!t.elementwise() || t.form == Form::Scalar || t.elem != Elem::Bool))
            fail("no_rule", "any() is of a condition for rows or tiles", node.span);
        return scalar(Elem::Bool, true);
    }
    if (name == "complete") {
        const Type t = arg(0);
        if (t.known() && t.form != Form::Row) fail("no_rule", "complete() is for rows", node.span);
        return with(t, t.elem);
    }
    if (name == "where") {
        const Type c = arg(0), a = arg(1), b = arg(2), t = meet(a, b, node.span);
        return with(meet(c, t, node.span), t.elem, t.natural);
    }
    if (name == "minimum" || name == "maximum") {
        const Type a = arg(0), b = arg(1), t = meet(a, b, node.span);
        return with(t, std::max(t.elem, Elem::Int), name == "minimum" ? t.natural : a.natural || b.natural);
    }
    if (name == "clamp") {
        const Type x = arg(0), low = arg(1), high = arg(2);
        const Type t = meet(meet(x, low, node.span), high, node.span);
        return with(t, std::max(t.elem, Elem::Int), high.natural && (low.natural || x.natural));
    }
    if (name == "cdiv") {
        const Type t = meet(arg(0), arg(1), node.span);
        return with(t, Elem::Int, t.natural);
    }
    if (name == "f32") return with(value(arg(0), node.span), Elem::Real);
    if (name == "i32") {
        const Type t = value(arg(0), node.span);
        return with(t, Elem::Int, t.natural || t.elem == Elem::Bool);
    }
    if (name == "tanh_approx" || name == "tanh_small" || name == "logistic_small")
        return with(value(arg(0), node.span), Elem::Real);
    const OpInfo* op = operator_named(name);
    if (op == nullptr) fail("no_rule", "no rule prints a call of `" + name + "`", node.span);
    if (static_cast<int>(node.items.size()) != op->arity + 1)
        fail("no_rule", "`" + name + "` takes " + std::to_string(op->arity) + " arguments", node.span);
    Type t = value(arg(0), node.span);
    for (int k = 1; k < op->arity; ++k) t = meet(t, arg(static_cast<std::size_t>(k)), node.span);
    if (op->bool_out) return with(t, Elem::Bool, true);
    return with(t, op->real_in ? Elem::Real : std::max(t.elem, Elem::Int), op->op == Op::Abs);
}

std::vector<const Node*> Expressions::votes(const Node& node) {
    if (callee(node) == "any") return {&node};
    std::vector<const Node*> out;
    for (const auto& i : node.items)
        if (i)
            for (const Node* v : votes(*i)) out.push_back(v);
    return out;
}

std::vector<const Node*> Expressions::reductions(const Node& node) const {
    if (callee(node) == "any") return {}; // a vote has its own loop
    if (node.kind == Kind::Call) {
        const Node& f = *node.items[0];
        const bool method = f.kind == Kind::Attribute && (f.text == "amax" || f.text == "sum");
        if (method || callee(node) == "complete") return {&node};
    }
    std::vector<const Node*> out;
    for (const auto& i : node.items)
        if (i)
            for (const Node* r : reductions(*i)) out.push_back(r);
    return out;
}

} // namespace cubridge::ir::lower
