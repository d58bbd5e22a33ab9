// Expressions: from syntax to slots and operators. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/compile.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::cuir {

using syntax::Kind;
using syntax::Node;
using Form = Expr::Form;

namespace {

std::optional<Op> operator_of(std::string_view text) {
    struct Row {
        std::string_view text;
        Op op;
    };
    static constexpr Row table[] = {
        {"+", Op::Add}, {"-", Op::Sub}, {"*", Op::Mul}, {"/", Op::Div}, {"//", Op::FloorDiv},
        {"%", Op::Mod}, {"&", Op::And}, {"|", Op::Or},  {"^", Op::Xor}, {"<", Op::Lt},
        {"<=", Op::Le}, {">", Op::Gt},  {">=", Op::Ge}, {"==", Op::Eq}, {"!=", Op::Ne},
    };
    for (const auto& row : table)
        if (row.text == text) return row.op;
    return std::nullopt;
}

/// Names with a value of their own.
std::optional<Value> number_named(std::string_view name) {
    if (name == "inf") return Value::number(std::numeric_limits<double>::infinity());
    if (name == "LOG2E") return Value::number(1.4426950408889634074);
    if (name == "LN2") return Value::number(0.69314718055994530942);
    return std::nullopt;
}

} // namespace

std::string source_of(const Node& node) {
    return syntax::print(node);
}

std::optional<DType> type_named(std::string_view name, const KernelCode& kernel) {
    if (name == "elem") return kernel.element;
    return dtype_from_short(name);
}

int Names::slot(const std::string& name) {
    return slots.emplace(name, static_cast<int>(slots.size())).first->second;
}

Expr& ExprCompiler::make(Form form, const Node& node) {
    auto& e = code_.exprs.emplace_back();
    e.form = form;
    e.node = &node;
    return e;
}

const Expr* ExprCompiler::constant(const Node& node, Value value) {
    auto& e = make(Form::Constant, node);
    e.constant = std::move(value);
    return &e;
}

const Expr* ExprCompiler::compile(const Node& node) {
    switch (node.kind) {
    case Kind::Name: return name(node);
    case Kind::Int: return constant(node, Value::integer(node.integer));
    case Kind::Float: return constant(node, Value::number(node.real));
    case Kind::True: return constant(node, Value::boolean(true));
    case Kind::False: return constant(node, Value::boolean(false));
    case Kind::String: return constant(node, Value::handle(Value::Tag::Text, 0));
    case Kind::Unary: return unary(node);
    case Kind::Binary: return binary(node);
    case Kind::Compare: return comparison(node);
    case Kind::BoolOp: return several(node, node.text == "and" ? Form::And : Form::Or);
    case Kind::Conditional: {
        auto& e = make(Form::Conditional, node);
        e.args = {compile(*node.items[1]), compile(*node.items[0]), compile(*node.items[2])};
        return &e;
    }
    case Kind::Tuple: return several(node, Form::Tuple);
    case Kind::List: return several(node, Form::List);
    case Kind::Call: return call(node);
    case Kind::Subscript: return index(node);
    case Kind::Attribute:
        if (node.text == "T") {
            auto& e = make(Form::Transpose, node);
            e.args = {compile(*node.items[0])};
            return &e;
        }
        fail("static", "`." + node.text + "` is nothing that a value of CuIR has", node.span, "it has .T");
    default: fail("static", "this expression does not exist in CuIR", node.span);
    }
}

const Expr* ExprCompiler::name(const Node& node) {
    const auto found = [&](const Names& names, Form form) -> const Expr* {
        const auto it = names.slots.find(node.text);
        if (it == names.slots.end()) return nullptr;
        auto& e = make(form, node);
        e.slot = it->second;
        e.name = node.text;
        return &e;
    };
    if (local_)
        if (const auto* e = found(*local_, Form::Local)) return e;
    if (const auto* e = found(common_, Form::Common)) return e;
    if (const auto value = number_named(node.text)) return constant(node, *value);
    if (const auto type = type_named(node.text, kernel_))
        return constant(node, Value::handle(Value::Tag::Type, static_cast<int>(*type)));
    fail("static", "nothing is called `" + node.text + "` here", node.span);
}

const Expr* ExprCompiler::elementwise(const Node& node, Op op, std::initializer_list<const Node*> args) {
    std::vector<const Expr*> compiled;
    for (const auto* a : args) compiled.push_back(compile(*a));
    auto& e = make(Form::Elementwise, node);
    e.op = op;
    e.args = std::move(compiled);
    return &e;
}

const Expr* ExprCompiler::unary(const Node& node) {
    if (node.text == "not") return several(node, Form::Not);
    if (node.text == "~") return elementwise(node, Op::Not, {node.items[0].get()});
    const auto* x = compile(*node.items[0]);
    if (node.text == "+") return x;
    if (x->form == Form::Constant && x->constant.is_scalar()) return constant(node, apply(Op::Neg, &x->constant, 1));
    auto& e = make(Form::Elementwise, node);
    e.op = Op::Neg;
    e.args = {x};
    return &e;
}

const Expr* ExprCompiler::binary(const Node& node) {
    const auto op = operator_of(node.text);
    if (!op) fail("static", "the operator `" + node.text + "` does not exist in CuIR", node.span);
    return elementwise(node, *op, {node.items[0].get(), node.items[1].get()});
}

const Expr* ExprCompiler::comparison(const Node& node) {
    const Expr* all = nullptr;
    for (std::size_t k = 0; k < node.names.size(); ++k) {
        const auto op = operator_of(node.names[k]);
        if (!op) fail("static", "the comparison `" + node.names[k] + "` does not exist in CuIR", node.span);
        const auto* e = elementwise(node, *op, {node.items[k].get(), node.items[k + 1].get()});
        if (!all) {
            all = e;
            continue;
        }
        auto& both = make(Form::Elementwise, node);
        both.op = Op::And;
        both.args = {all, e};
        all = &both;
    }
    return all;
}

const Expr* ExprCompiler::several(const Node& node, Form form, std::size_t from) {
    std::vector<const Expr*> args;
    for (std::size_t k = from; k < node.items.size(); ++k) args.push_back(compile(*node.items[k]));
    auto& e = make(form, node);
    e.args = std::move(args);
    return &e;
}

const Expr* ExprCompiler::function(const Node& node, const OpInfo& op, bool f32) {
    if (!node.keywords.empty() || static_cast<int>(node.items.size()) - 1 != op.arity)
        fail("static", std::string("`") + op.name + "` takes " + std::to_string(op.arity) + " arguments", node.span);
    std::vector<const Expr*> args;
    for (std::size_t k = 1; k < node.items.size(); ++k) args.push_back(compile(*node.items[k]));
    auto& e = make(f32 ? Form::ElementwiseF32 : Form::Elementwise, node);
    e.op = op.op;
    e.args = std::move(args);
    return &e;
}

const Expr* ExprCompiler::method(const Node& node, const Node& callee) {
    if (callee.items[0]->kind == Kind::Name && callee.items[0]->text == "f32") {
        const OpInfo* op = nullptr;
        for (const auto& o : all_ops())
            if (callee.text == o.name && *o.torch != 0) op = &o;
        if (!op) op = find_operator(callee.text);
        if (!op) fail("static", "`f32." + callee.text + "` is no operator", callee.span);
        return function(node, *op, true);
    }
    if (callee.text != "amax" && callee.text != "sum")
        fail("static", "`." + callee.text + "()` does not exist in CuIR", callee.span,
             "there are .amax(-1) and .sum(-1)");
    const bool last = node.items.size() == 2 && node.items[1]->kind == Kind::Unary && node.items[1]->text == "-" &&
                      node.items[1]->items[0]->kind == Kind::Int && node.items[1]->items[0]->integer == 1;
    if (!last || !node.keywords.empty())
        fail("static", "a row statistic is taken over columns", node.span, "write (-1)");
    auto& e = make(callee.text == "amax" ? Form::Amax : Form::Sum, node);
    e.args = {compile(*callee.items[0])};
    return &e;
}

const Expr* ExprCompiler::call(const Node& node) {
    const Node& callee = *node.items[0];
    if (callee.kind == Kind::Attribute) return method(node, callee);
    if (callee.kind != Kind::Name) fail("static", "only a name can be called", node.span);
    for (std::size_t k = 0; k < kernel_.defs.size(); ++k) {
        const auto& def = kernel_.defs[k];
        if (def.name != callee.text) continue;
        if (!node.keywords.empty() || node.items.size() - 1 != def.params.size())
            fail("static", "`" + def.name + "` takes " + std::to_string(def.params.size()) + " arguments", node.span);
        std::vector<const Expr*> args;
        for (std::size_t a = 1; a < node.items.size(); ++a) args.push_back(compile(*node.items[a]));
        auto& e = make(Form::Def, node);
        e.slot = static_cast<int>(k);
        e.args = std::move(args);
        return &e;
    }
    if (const auto* signature = find_builtin(callee.text)) {
        if (signature->builtin >= Builtin::Range) fail("static", "`" + callee.text + "` is no value", node.span);
        return builtin(node, *signature);
    }
    if (const auto* op = find_operator(callee.text)) return function(node, *op, false);
    fail("static", "there is no function `" + callee.text + "`", node.span);
}

const Expr* ExprCompiler::builtin(const Node& node, const Signature& s) {
    std::vector<const Expr*> args;
    std::vector<const Expr*> named(s.params.size(), nullptr);
    const auto argument = [&](const Node& a) -> const Expr* {
        if (s.builtin == Builtin::Classify && args.size() == 1 && a.kind == Kind::Name)
            for (std::size_t k = 0; k < kernel_.defs.size(); ++k)
                if (kernel_.defs[k].name == a.text) {
                    auto& e = make(Form::Def, a);
                    e.slot = static_cast<int>(k);
                    return &e;
                }
        return compile(a);
    };
    for (std::size_t k = 1; k < node.items.size(); ++k) args.push_back(argument(*node.items[k]));
    for (const auto& keyword : node.keywords) {
        const auto it =
            std::find_if(s.params.begin(), s.params.end(), [&](const char* p) { return keyword.name == p; });
        if (it == s.params.end())
            fail("static", std::string("`") + s.name + "` has no `" + keyword.name + "=`", node.span);
        const auto at = static_cast<std::size_t>(it - s.params.begin());
        if (named[at] || (!s.variadic && at < args.size()))
            fail("static", "`" + keyword.name + "=` is given twice", node.span);
        named[at] = compile(*keyword.value);
    }
    if (!s.variadic) {
        if (args.size() > s.params.size())
            fail("static",
                 std::string("`") + s.name + "` takes at most " + std::to_string(s.params.size()) + " arguments",
                 node.span);
        args.resize(s.params.size(), nullptr);
        for (std::size_t k = 0; k < args.size(); ++k)
            if (named[k]) args[k] = named[k];
        for (int k = 0; k < s.required; ++k)
            if (!args[static_cast<std::size_t>(k)])
                fail("static", std::string("`") + s.name + "` needs `" + s.params[static_cast<std::size_t>(k)] + "`",
                     node.span);
    }
    auto& e = make(Form::Call, node);
    e.builtin = s.builtin;
    e.args = std::move(args);
    for (const auto& keyword : node.keywords) {
        if (keyword.name != "order") continue;
        const auto& order = keyword.value->text;
        if (order != "by_head" && order != "heaviest_first")
            fail("static", "an order is \"by_head\" or \"heaviest_first\"", node.span);
        e.slot = order == "heaviest_first" ? 1 : 0;
    }
    return &e;
}

const Expr* ExprCompiler::slice(const Node& node) {
    std::vector<const Expr*> args;
    for (const auto& part : node.items) args.push_back(part ? compile(*part) : nullptr);
    auto& e = make(Form::Slice, node);
    e.args = std::move(args);
    return &e;
}

const Expr* ExprCompiler::index(const Node& node) {
    const Node& object = *node.items[0];
    if (object.kind == Kind::Attribute && object.text == "shape") {
        auto& e = make(Form::Shape, node);
        e.args = {compile(*object.items[0]), compile(*node.items[1])};
        return &e;
    }
    std::vector<const Expr*> args{compile(object)};
    const auto add = [&](const Node& i) { args.push_back(i.kind == Kind::Slice ? slice(i) : compile(i)); };
    if (node.items[1]->kind == Kind::Tuple)
        for (const auto& i : node.items[1]->items) add(*i);
    else
        add(*node.items[1]);
    auto& e = make(Form::Index, node);
    e.args = std::move(args);
    return &e;
}

} // namespace cubridge::ir::cuir
