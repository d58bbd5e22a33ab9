// Types of names, by inference to a fixed point. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/infer.h"
#include "ir/lower/expression.h"
#include "ir/lower/place.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;
using K = Statement::Kind;

namespace {

constexpr int kPasses = 100; // types only widen; a program that needs more is refused

/// `alloc(place, shape, dtype)`.
struct Alloc {
    std::string place, dtype;
    std::vector<std::string> shape;
};

Alloc alloc_of(const Node& call) {
    if (call.items.size() != 4 || call.items[1]->kind != Kind::Name || call.items[3]->kind != Kind::Name)
        fail("no_rule", "alloc takes a place, a shape and an element type", call.span,
             "write alloc(shared, (ST, BN, D), elem)");
    return {call.items[1]->text, call.items[3]->text, texts(call.items[2])};
}

class Inference {
public:
    explicit Inference(const RoleScopes& roles) : roles_(roles) {}

    void run(const std::vector<Statement>& body, Scope& root) {
        for (int pass = 0; pass < kPasses; ++pass) {
            changed_ = false;
            infer(body, root);
            if (!changed_) return;
        }
        fail("no_rule", "the types of this program depend on each other in too long a chain");
    }

private:
    void widen(Variable& v, const Type& t, const std::string& name, Span span) {
        const Type merged = merge(v.type, t, name, span);
        if (merged == v.type) return;
        v.type = merged;
        changed_ = true;
    }

    /// The type of a name that is given this value.
    static Type assigned_type(Type t, const Node& value) {
        const std::string f = callee(value);
        if ((t.form == Form::Rows || t.form == Form::Cols) && f != "rows" && f != "cols")
            t.form = t.form == Form::Rows ? Form::Row : Form::Column;
        t.storage = false;
        return t;
    }

    void assign(Scope& scope, const Node& target, const Type& t, const Node& value) {
        if (target.kind != Kind::Name) return;
        widen(*scope.find(target.text), callee(value) == "alloc" ? t : assigned_type(t, value), target.text,
              target.span);
    }

    void infer(const std::vector<Statement>& body, Scope& scope) {
        for (const auto& s : body)
            located(s, [&] {
                for (const auto& e : read_by(s)) calls(*e, scope);
                infer(s, scope);
            });
    }

    void infer(const Statement& s, Scope& scope) {
        Expressions x(scope);
        switch (s.kind) {
        case K::Def: infer(s.body, *scope.find_def(s.name)->scope); return;
        case K::With: infer(s.body, *roles_.at(&s)); return;
        case K::For: loop(s, scope); break;
        case K::If:
        case K::While:
            if (const Type t = x.type(*s.node->items[0]); t.known() && t.form != Form::Scalar)
                fail("no_rule", "a condition is a scalar", s.node->span);
            break;
        case K::Simple: simple(*s.node, scope); return;
        default: break;
        }
        infer(s.body, scope);
    }

    void loop(const Statement& s, Scope& scope) {
        const std::string over = callee(*s.node->items[1]);
        if (over != "range" && over != "each" && loop_over(s).empty())
            fail("no_rule", "no rule prints a loop over this", s.node->items[1]->span, "loop over range(), bind()");
        if (over == "range" && (s.node->items[1]->items.size() < 2 || s.node->items[0]->kind != Kind::Name))
            fail("no_rule", "for k in range(...)", s.node->span);
        Expressions x(scope);
        bool natural = true;
        if (over == "range")
            for (std::size_t k = 1; k < s.node->items[1]->items.size(); ++k) {
                const Type t = x.type(*s.node->items[1]->items[k]);
                if (k == 1 && s.node->items[1]->items.size() > 2) natural = t.natural || !t.known();
            }
        for (const auto& name : written_by(s)) widen(*scope.find(name), scalar(Elem::Int, natural), name, s.node->span);
    }

    void simple(const Node& n, Scope& scope) {
        Expressions x(scope);
        if (n.kind == Kind::Return) return give_back(n, scope);
        if (n.kind == Kind::AugAssign) {
            Node sum = n;
            sum.kind = Kind::Binary;
            if (n.items[0]->kind == Kind::Subscript && n.items[0]->items[0]->kind == Kind::Name &&
                x.type(*n.items[0]->items[0]).storage)
                sum.items[0] = n.items[0]->items[0];
            const Type t = x.type(sum);
            return assign(scope, *n.items[0], t, sum);
        }
        if (n.kind == Kind::ExprStmt && callee(*n.items[0]) == "publish") return publish(*n.items[0], scope);
        if (n.kind != Kind::Assign) return;
        if (n.items.size() != 2) fail("no_rule", "one assignment has one target", n.span);
        const auto targets = parts(n.items[0]);
        const Node& value = *n.items[1];
        if (n.items[0]->kind != Kind::Tuple) {
            if (targets[0]->kind == Kind::Name) assign(scope, *targets[0], value_type(value, scope), value);
            return;
        }
        std::vector<Type> types;
        if (value.kind == Kind::Tuple) {
            for (const auto& v : value.items) types.push_back(value_type(*v, scope));
        } else {
            types = several(value, scope, targets.size());
        }
        if (types.size() != targets.size())
            fail("no_rule", std::to_string(types.size()) + " values for " + std::to_string(targets.size()) + " names",
                 n.span);
        for (std::size_t k = 0; k < types.size(); ++k)
            assign(scope, *targets[k], types[k], value.kind == Kind::Tuple ? *value.items[k] : value);
    }

    Type value_type(const Node& value, Scope& scope) {
        const std::string f = callee(value);
        if (f == "alloc") return type_of_alloc(value);
        if (f == "named_barrier" || f == "barrier" || f == "channel") {
            Type t;
            t.form = f == "channel" ? Form::Channel : f == "barrier" ? Form::Phases : Form::Barrier;
            if (t.form == Form::Barrier && value.items.size() > 1) t.columns = syntax::print(*value.items[1]);
            for (const auto& k : value.keywords)
                if (k.name == "n") t.extents = {"n"}; // how many is the declaration's affair alone
            return t;
        }
        const Def* d = scope.find_def(f);
        if (d != nullptr && !d->by_value && d->types.size() == 1) return d->types[0];
        if (value.kind == Kind::List) {
            Type t;
            t.form = Form::Ranges;
            return t;
        }
        return Expressions(scope).type(value);
    }

    static Variable& channel(const Node& call, Scope& scope) {
        Variable* v =
            call.items.size() > 1 && call.items[1]->kind == Kind::Name ? scope.find(call.items[1]->text) : nullptr;
        if (v == nullptr || (v->type.known() && v->type.form != Form::Channel))
            fail("no_rule", callee(call) + "() is of a channel", call.span);
        return *v;
    }

    /// What is taken is what is published. Key ranges lie in the entry as their def gives them.
    void publish(const Node& call, Scope& scope) {
        Variable& to = channel(call, scope);
        if (call.items.size() != 3 || call.items[2]->kind != Kind::Tuple)
            fail("no_rule", "publish(channel, (value, ...))", call.span);
        const auto& values = call.items[2]->items;
        to.carried.resize(std::max(to.carried.size(), values.size()));
        if (to.carried.size() != values.size())
            fail("no_rule", "entries of a channel have the same number of values", call.span);
        for (std::size_t k = 0; k < values.size(); ++k) {
            Type t = Expressions(scope).type(*values[k]);
            if (t.form == Form::Ranges) t.columns = taken(t.element, scope, *values[k]);
            if (t.known() && t.form != Form::Scalar && t.form != Form::Ranges)
                fail("no_rule", "scalars and key ranges are published", values[k]->span);
            const Type merged = merge(to.carried[k], t, "an entry of a channel", values[k]->span);
            if (!(merged == to.carried[k])) changed_ = true;
            to.carried[k] = merged;
        }
    }

    /// The type of key ranges out of a channel: what their def gives.
    static std::string taken(const std::string& def, const Scope& scope, const Node& value) {
        const Def* d = scope.find_def(def);
        if (d == nullptr) fail("no_rule", "key ranges that are published come from a def", value.span);
        std::string arguments;
        for (const auto& p : d->params) {
            const Type& t = d->scope->find(p)->type;
            if (t.known() && t.form != Form::Scalar)
                fail("no_rule", "`" + def + "` has to take scalars alone", value.span);
            arguments += arguments.empty() ? "0" : ", 0";
        }
        return "Taken<decltype(" + def + "(" + arguments + "))>";
    }

    std::vector<Type> several(const Node& value, Scope& scope, std::size_t targets) {
        const std::string f = callee(value);
        Expressions x(scope);
        if (f == "take") {
            const auto& carried = channel(value, scope).carried;
            return carried.empty() ? std::vector<Type>(targets) : carried;
        }
        if (f == "pick") {
            for (std::size_t k = 1; k < value.items.size(); ++k) x.type(*value.items[k]);
            return {scalar(Elem::Int, true), scalar(Elem::Bool, true)};
        }
        if (f == "divmod" && value.items.size() == 3) {
            const Type a = x.type(*value.items[1]), b = x.type(*value.items[2]);
            if (!a.known() || !b.known()) return {{}, {}};
            Type quotient = meet(a, b, value.span), rest = quotient;
            quotient.natural = a.natural && b.natural;
            rest.natural = b.natural;
            return {quotient, rest};
        }
        if (const Def* d = scope.find_def(f)) return d->types;
        fail("no_rule", "no rule takes `" + syntax::print(value) + "` apart", value.span);
    }

    void give_back(const Node& n, Scope& scope) {
        Def* def = def_of(scope);
        if (def == nullptr) fail("no_rule", "return outside of a def", n.span);
        const auto values = parts(n.items[0]);
        for (std::size_t k = 0; k < values.size(); ++k) {
            const Type t = assigned_type(value_type(*values[k], scope), *values[k]);
            const Type merged = merge(def->types[k], t, "what it returns", n.span);
            if (!(merged == def->types[k])) changed_ = true;
            def->types[k] = merged;
        }
        if (def->by_value && def->types[0].known() && def->types[0].form != Form::Scalar &&
            def->types[0].form != Form::Ranges) {
            def->by_value = false;
            changed_ = true;
        }
    }

    /// What a call gives a def's parameters.
    void calls(const Node& node, Scope& scope) {
        const std::string f = callee(node);
        if (Def* d = scope.find_def(f)) give_arguments(*d, node, 1, 0, scope);
        if (f == "classify" && node.items.size() > 2) {
            Def* d = scope.find_def(node.items[2]->text);
            if (d == nullptr) fail("no_rule", "classify(count, def, ...)", node.span);
            give_arguments(*d, node, 3, 1, scope);
            const std::string& n = d->params.back();
            widen(d->scope->variables.at(n), scalar(Elem::Int, true), n, node.span);
        }
        for (std::size_t k = 0; k < node.items.size(); ++k)
            if (node.items[k]) calls(*node.items[k], scope);
    }

    void give_arguments(Def& d, const Node& call, std::size_t from, std::size_t more, Scope& scope) {
        d.called = true;
        if (call.items.size() - from + more != d.params.size())
            fail("no_rule", "`" + d.statement->name + "` takes " + std::to_string(d.params.size()) + " arguments",
                 call.span);
        for (std::size_t k = from; k < call.items.size(); ++k) {
            const std::string& name = d.params[k - from];
            Variable& v = d.scope->variables.at(name);
            Type t = Expressions(scope).type(*call.items[k]);
            t.storage = false;
            if (t.form == Form::Ranges) t.element = t.columns = ""; // of any def: the parameter is `auto&`
            if (v.type.known() && t.known() && (v.type.form != t.form || v.type.columns != t.columns))
                fail("no_rule", "`" + name + "` of `" + d.statement->name + "` is given two kinds of values",
                     call.items[k]->span);
            widen(v, t, name, call.items[k]->span);
        }
    }

    const RoleScopes& roles_;
    bool changed_ = false;
};

} // namespace

std::vector<std::string> texts(const NodePtr& node) {
    std::vector<std::string> out;
    for (const auto& p : parts(node)) out.push_back(syntax::print(*p));
    return out;
}

Type type_of_alloc(const Node& call) {
    const Alloc a = alloc_of(call);
    Type t;
    t.element = a.dtype;
    t.elem = elem_of(a.dtype, call.span);
    if (a.place == "workspace") {
        t.form = Form::Work;
        t.extents = a.shape;
        return t;
    }
    if (a.shape.size() < 2) fail("no_rule", "shared and register storage has rows and columns", call.span);
    t.columns = a.shape.back();
    if (a.place == "register") {
        if (a.shape.size() != 2) fail("no_rule", "register storage is one tile", call.span);
        if (a.shape[0] != "R") fail("no_rule", "the rows of an agent are named R", call.span);
        t.form = a.dtype == "elem" ? Form::Fragments : a.shape[1] == "1" ? Form::Row : Form::Tile;
        if (t.form == Form::Row) t.columns.clear();
        t.storage = true;
        t.element.clear();
        return t;
    }
    if (a.place != "shared") fail("no_rule", "storage is shared, register or workspace", call.span);
    t.form = a.dtype != "elem" && a.shape.size() == 2 ? Form::CellColumns : Form::Cells;
    t.extents.assign(a.shape.begin(), a.shape.end() - (t.form == Form::Cells ? 2 : 1));
    return t;
}

Def* def_of(Scope& scope) {
    if (scope.outer == nullptr) return nullptr;
    for (auto& [name, d] : scope.outer->defs)
        if (d.scope == &scope) return &d;
    return nullptr;
}

void infer_types(const cuir::Kernel& kernel, Scope& root, const RoleScopes& roles) {
    Inference(roles).run(kernel.body, root);
}

} // namespace cubridge::ir::lower
