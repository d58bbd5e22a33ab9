// Types of all names of a program by inference, and what else each statement's CUDA depends on.
// SPDX-License-Identifier: Apache-2.0
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include "ir/lower/place.h"
#include "ir/lower/reserved.h"
#include <algorithm>
#include <set>

namespace cubridge::ir::lower {

using cuir::Kernel;
using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;
using K = Statement::Kind;

namespace {

constexpr int kPasses = 16; // types only widen, so that this many are never needed

bool is_operand(const std::string& name) {
    return name.size() > 1 && name[0] == 'x' && name.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::string dtype_of(const Node& node) {
    return node.kind == Kind::Subscript ? node.items[0]->text : node.text;
}

std::vector<std::string> texts(const NodePtr& node) {
    std::vector<std::string> out;
    for (const auto& p : parts(node)) out.push_back(syntax::print(*p));
    return out;
}

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

class Analyser {
public:
    explicit Analyser(const cuir::Program& program) : program_(program) {}

    Analysis run() {
        for (const auto& s : program_.storage) {
            located(s, [&] { storage(s); });
        }
        for (const auto& k : program_.kernels) kernel(k);
        return std::move(out_);
    }

private:
    void storage(const Statement& s) {
        const Node& n = *s.node;
        if (n.items[0]->kind != Kind::Name || callee(*n.items.back()) != "alloc")
            fail("no_rule", "storage of a program is alloc(workspace, ...)", n.span);
        const Type t = type_of_alloc(*n.items.back());
        if (t.form != Form::Work) fail("no_rule", "storage of a program is workspace", n.span);
        work_[n.items[0]->text] = t;
        storage_text_ += cuir::line_of(s) + ";";
        out_.facts[&s];
    }

    Scope& scope(Scope* outer) {
        out_.scopes.emplace_back();
        out_.scopes.back().outer = outer;
        return out_.scopes.back();
    }

    static void give(Scope& scope, const std::string& name, Type type) {
        scope.variables[name] = {std::move(type), 0, true, false, 0};
    }

    void number(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            const int n = static_cast<int>(order_.size()) + 1;
            order_[&s] = n;
            number(s.body);
        }
    }

    void head(const Kernel& k, Scope& root) {
        for (const char* size : {"B", "Hq", "Hk", "Sq", "Sk", "D", "Dv"}) give(root, size, scalar(Elem::Int, true));
        for (const auto& [name, type] : work_) give(root, name, type);
        bool constants = false;
        for (const auto& p : k.head.back().node->params) {
            if (p.form == syntax::Param::Form::Bar) {
                constants = true;
            } else if (constants) {
                Type t = scalar(Elem::Real);
                const Node* value = p.fallback.get();
                const bool minus = value->kind == Kind::Unary && value->text == "-";
                if (minus) value = value->items[0].get();
                if (value->kind == Kind::Int) t = scalar(Elem::Int, !minus);
                if (value->kind == Kind::True || value->kind == Kind::False) t = scalar(Elem::Bool, true);
                if (value->kind == Kind::Name && value->text != "inf") t.form = Form::TypeName;
                give(root, p.name, t);
            }
        }
        for (const auto& s : k.head) {
            Facts& f = out_.facts[&s];
            f.scope = &root;
            f.kernel = &k;
            if (s.kind != K::Param) continue;
            located(s, [&] {
                const std::string dtype = dtype_of(*s.node);
                Type t = scalar(elem_of(dtype, s.node->span));
                if (s.node->kind == Kind::Subscript) {
                    t.form = is_operand(s.name) ? Form::Operand : Form::Tensor;
                    t.extents = texts(s.node->items[1]);
                }
                t.element = dtype;
                if (dtype == "elem" && is_operand(s.name))
                    if (const auto e = k.constant("elem")) f.derived = syntax::print(*e);
                give(root, s.name, t);
            });
        }
        const Resources r = resources(k);
        out_.facts[&k.head[1]].derived = std::to_string(r.threads) + "," + std::to_string(r.registers);
        out_.facts[&k.head.back()].derived = storage_text_;
    }

    void kernel(const Kernel& k) {
        kernel_ = &k;
        Scope& root = scope(nullptr);
        head(k, root);
        number(k.body);
        scopes(k.body, root);
        place(root, k.body, out_, order_);
        barriers_ = 1;
        for (int pass = 0; pass < kPasses; ++pass) {
            changed_ = false;
            infer(k.body, root);
            if (!changed_) break;
        }
        record(k.body, root);
        if (!k.is_map()) derive_waits(k, out_);
    }

    /// Scopes of roles and defs, before their outer one is placed: its own placing asks what they assign.
    void scopes(const std::vector<Statement>& body, Scope& outer) {
        for (const auto& s : body) {
            if (s.kind == K::Def) {
                Def d;
                d.statement = &s;
                d.scope = &scope(&outer);
                for (const auto& p : s.node->params) {
                    d.params.push_back(p.name);
                    give(*d.scope, p.name, {});
                }
                Scope& inner = *d.scope;
                located(s, [&] { results(s, d); });
                outer.defs[s.name] = d;
                place(inner, s.body, out_, order_);
            } else if (s.kind == K::With) {
                Scope& inner = scope(&outer);
                inner_[&s] = &inner;
                for (const auto& g : written_by(s)) give(inner, g, scalar(Elem::Int, true));
                scopes(s.body, inner);
                place(inner, s.body, out_, order_);
            } else {
                scopes(s.body, outer);
            }
        }
    }

    static void returns(const std::vector<Statement>& body, std::vector<const Node*>& out) {
        for (const auto& s : body) {
            if (s.kind == K::Simple && s.node->kind == Kind::Return) out.push_back(s.node.get());
            returns(s.body, out);
        }
    }

    static bool assigned(const std::vector<Statement>& body, const std::string& name) {
        return std::any_of(body.begin(), body.end(), [&](const auto& s) {
            const auto w = written_by(s);
            return std::find(w.begin(), w.end(), name) != w.end() || assigned(s.body, name);
        });
    }

    /// Names of what a def returns by reference: the name it returns, where that is its own and always the same.
    void results(const Statement& s, Def& d) {
        std::vector<const Node*> all;
        returns(s.body, all);
        if (all.empty() || !all[0]->items[0]) fail("no_rule", "a def returns something", s.node->span);
        const std::size_t count = parts(all[0]->items[0]).size();
        d.types.resize(count);
        for (const Node* r : all)
            if (!r->items[0] || parts(r->items[0]).size() != count)
                fail("no_rule", "a def returns the same number of values everywhere", r->span);
        d.by_value = all[0]->items[0]->kind != Kind::Tuple; // settled when the type is known
        for (std::size_t k = 0; k < count; ++k) {
            const Node& first = *parts(all[0]->items[0])[k];
            bool same = first.kind == Kind::Name && (assigned(s.body, first.text) || d.is_param(first.text)) &&
                        std::find(d.results.begin(), d.results.end(), first.text) == d.results.end();
            for (const Node* r : all) same = same && syntax::equal(*parts(r->items[0])[k], first);
            d.results.push_back(same ? first.text : "result" + std::to_string(k));
        }
    }

    // --- types

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
        case K::With: infer(s.body, *inner_.at(&s)); return;
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
        if (over != "range" && over != "bind" && over != "each")
            fail("no_rule", "no rule prints a loop over this", s.node->items[1]->span, "loop over range(), bind()");
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
            types = several(value, scope);
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
        if (f == "named_barrier") {
            Type t;
            t.form = Form::Barrier;
            t.columns = value.items.size() > 1 ? syntax::print(*value.items[1]) : "";
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

    std::vector<Type> several(const Node& value, Scope& scope) {
        const std::string f = callee(value);
        Expressions x(scope);
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
            if (v.type.known() && t.known() && (v.type.form != t.form || v.type.columns != t.columns))
                fail("no_rule", "`" + name + "` of `" + d.statement->name + "` is given two kinds of values",
                     call.items[k]->span);
            widen(v, t, name, call.items[k]->span);
        }
    }

    // --- facts

    /// The same identifier stands on both sides.
    static void check_name(const std::string& name) {
        if (is_reserved(name)) fail("no_rule", "`" + name + "` means something else in CUDA", {}, "use another name");
    }

    static Def* def_of(Scope& scope) {
        if (scope.outer == nullptr) return nullptr;
        for (auto& [name, d] : scope.outer->defs)
            if (d.scope == &scope) return &d;
        return nullptr;
    }

    void record(const std::vector<Statement>& body, Scope& scope) {
        for (const auto& s : body) located(s, [&] { record(s, scope); });
    }

    void record(const Statement& s, Scope& scope) {
        Facts& f = out_.facts[&s];
        f.scope = &scope;
        f.kernel = kernel_;
        Scope* inner = &scope;
        if (s.kind == K::With) {
            inner = inner_.at(&s);
            agent(s);
        }
        if (s.kind == K::Def) {
            const Def& d = *scope.find_def(s.name);
            if (!d.called) fail("no_rule", "`" + s.name + "` is never called, so that its types are unknown");
            inner = d.scope;
            for (const auto& [name, v] : inner->variables)
                if (d.is_param(name) && v.writes > 0 && v.type.array() &&
                    std::find(d.results.begin(), d.results.end(), name) == d.results.end())
                    fail("no_rule", "`" + name + "` is assigned, but not returned: its caller would see it");
            f.derived = interface(d);
        }
        for (const auto& name : written_by(s)) check_name(name);
        if (s.kind == K::Def) {
            check_name(s.name);
            for (const auto& p : scope.find_def(s.name)->params) check_name(p);
        }
        const Def* of = def_of(scope);
        for (auto* list : {&f.results, &f.before})
            for (auto& b : *list) {
                if (of != nullptr && !of->by_value && // a parameter of the lambda
                    std::find(of->results.begin(), of->results.end(), b.name) != of->results.end())
                    b.declares = b.constant = false;
                b.type = scope.find(b.name)->type;
                if (!b.type.known()) fail("no_rule", "the type of `" + b.name + "` is unknown");
            }
        for (const auto& e : read_by(s)) reads(*e, *inner, s, f);
        if (s.kind == K::Simple && s.node->kind == Kind::ExprStmt) {
            const Node& call = *s.node->items[0];
            if (callee(call) == "copy_async") f.derived = threads_;
            if (callee(call) == "sync" && call.items.size() == 2)
                if (const Variable* v = scope.find(call.items[1]->text)) f.derived = width_ + factor(v->type.columns);
        }
        if (s.kind == K::Simple && s.node->kind == Kind::Return) f.derived = interface(*def_of(scope));
        if (s.kind == K::Simple && s.node->kind == Kind::Assign && callee(*s.node->items.back()) == "named_barrier") {
            f.derived = std::to_string(barriers_);
            ++barriers_;
        }
        record(s.body, *inner);
    }

    /// Threads of the role, as text: what collective statements name.
    void agent(const Statement& s) {
        for (const auto& k : s.node->items[0]->keywords)
            if (k.name == "warps" || k.name == "warpgroups") {
                width_ = k.name == "warps" ? "32 * " : "128 * ";
                threads_ = width_ + factor(syntax::print(*k.value));
            }
    }

    static std::string factor(const std::string& text) {
        return text.find(' ') == std::string::npos ? text : "(" + text + ")";
    }

    void reads(const Node& e, Scope& scope, const Statement& s, Facts& f) {
        for (const auto& name : names_in(e)) {
            const Variable* v = scope.find(name);
            if (v == nullptr) continue;
            if (!v->type.known()) fail("no_rule", "the type of `" + name + "` is unknown", e.span);
            if (!v->given && v->first > order_.at(&s))
                fail("no_rule", "`" + name + "` is read before it is assigned", e.span);
            f.reads.push_back(name + "=" + v->type.text());
        }
        called(e, scope, f);
    }

    void called(const Node& node, const Scope& scope, Facts& f) {
        std::string name = callee(node);
        if (name == "classify") name = node.items[2]->text;
        if (const Def* d = scope.find_def(name)) f.derived += interface(*d);
        for (const auto& i : node.items)
            if (i) called(*i, scope, f);
    }

    static std::string interface(const Def& d) {
        std::string out = "(" + d.signature() + ")";
        for (std::size_t k = 0; k < d.results.size(); ++k) out += d.results[k] + ":" + d.types[k].text() + ";";
        return out + (d.by_value ? "value" : "reference");
    }

    const cuir::Program& program_;
    Analysis out_;
    const Kernel* kernel_ = nullptr;
    std::map<std::string, Type> work_;
    std::string storage_text_;
    std::map<const Statement*, int> order_;
    std::map<const Statement*, Scope*> inner_;
    std::string width_, threads_;
    int barriers_ = 1;
    bool changed_ = false;
};

} // namespace

Analysis analyse(const cuir::Program& program) {
    return Analyser(program).run();
}

const Binding* Facts::result(const std::string& name) const {
    for (const auto& b : results)
        if (b.name == name) return &b;
    return nullptr;
}

const Facts& Analysis::of(const Statement& s) const {
    static const Facts none;
    const auto it = facts.find(&s);
    return it == facts.end() ? none : it->second;
}

std::string Analysis::key(const Statement& s) const {
    return std::to_string(static_cast<int>(s.kind)) + " " + cuir::line_of(s) + "\n" + facts_key(s);
}

std::string Analysis::facts_key(const Statement& s) const {
    const Facts& f = of(s);
    std::string out;
    const auto add = [&](char mark, const std::vector<Binding>& list) {
        for (const auto& b : list)
            out += mark + b.name + "=" + b.type.text() + (b.declares ? "d" : "") + (b.constant ? "c" : "") + " ";
    };
    add('>', f.results);
    add('^', f.before);
    for (const auto& r : f.reads) out += "<" + r + " ";
    out += f.derived + " " + std::to_string(f.pending);
    return out;
}

std::map<std::string, std::int64_t> int_constants(const Kernel& kernel) {
    std::map<std::string, std::int64_t> out;
    bool constants = false;
    for (const auto& p : kernel.head.back().node->params) {
        if (p.form == syntax::Param::Form::Bar)
            constants = true;
        else if (constants)
            if (const auto v = known_int(*p.fallback, out)) out[p.name] = *v;
    }
    return out;
}

Resources resources(const Kernel& kernel) {
    if (kernel.is_map()) return {256, 255};
    Resources out;
    out.registers = 0;
    const auto values = int_constants(kernel);
    for (const auto& s : kernel.body) {
        if (s.kind != K::With) continue;
        for (const auto& k : s.node->items[0]->keywords) {
            const auto v = known_int(*k.value, values);
            if (!v) fail("no_rule", "`" + k.name + "` of a role is a constant", k.span);
            if (k.name == "warps") out.threads += static_cast<int>(32 * *v);
            if (k.name == "warpgroups") out.threads += static_cast<int>(128 * *v);
            if (k.name == "registers") out.registers = std::max(out.registers, static_cast<int>(*v));
        }
    }
    if (out.registers == 0) out.registers = 255;
    return out;
}

} // namespace cubridge::ir::lower
