// The scopes of a program, and what each statement's CUDA depends on.
// SPDX-License-Identifier: Apache-2.0
#include "ir/lower/agents.h"
#include "ir/lower/expression.h"
#include "ir/lower/facts.h"
#include "ir/lower/infer.h"
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

bool is_operand(const std::string& name) {
    return name.size() > 1 && name[0] == 'x' && name.find_first_not_of("0123456789", 1) == std::string::npos;
}

std::string dtype_of(const Node& node) {
    return node.kind == Kind::Subscript ? node.items[0]->text : node.text;
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
        scope.variables[name] = {std::move(type), 0, true, 0};
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
                if (dtype == "counter") {
                    Type t;
                    t.form = Form::Counter;
                    return give(root, s.name, t);
                }
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
        infer_types(k, root, inner_);
        const Agents agents(k);
        agents_ = &agents;
        loops_.clear();
        loops_of(k.body);
        record(k.body, root);
        number_votes(k.body, 0);
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
                item(s.body, inner);
                scopes(s.body, inner);
                place(inner, s.body, out_, order_);
            } else {
                scopes(s.body, outer);
            }
        }
    }

    /// The current item is the kernel's b, h and m in every role, whichever way it gets one: operands are read of
    /// request b.
    static void item(const std::vector<Statement>& body, Scope& scope) {
        for (const auto& s : body) {
            const bool takes =
                s.kind == K::Simple && s.node->kind == Kind::Assign && callee(*s.node->items.back()) == "take";
            if (takes || (s.kind == K::For && !loop_over(s).empty()))
                for (const auto& name : written_by(s))
                    if (name == "b" || name == "h" || name == "m") give(scope, name, scalar(Elem::Int, true));
            item(s.body, scope);
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

    // --- facts

    /// The same identifier stands on both sides.
    void check_name(const std::string& name) const {
        const bool loop =
            (name == "items" && loops_.count("bind") != 0) || (name == "queue" && loops_.count("draw") != 0);
        if (is_reserved(name) || loop)
            fail("no_rule", "`" + name + "` means something else in CUDA", {}, "use another name");
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
                if (scope.find(b.name)->given) b.declares = b.constant = false;
                if (!b.type.known()) fail("no_rule", "the type of `" + b.name + "` is unknown");
            }
        for (const auto& e : read_by(s)) reads(*e, *inner, s, f);
        if (s.kind == K::Simple && s.node->kind == Kind::ExprStmt) {
            const Node& call = *s.node->items[0];
            if (callee(call) == "copy_async" && call.keywords.empty()) f.derived = threads_;
            if ((callee(call) == "sync" || callee(call) == "arrive") && call.items.size() == 2) {
                const Node& at = call.items[1]->kind == Kind::Subscript ? *call.items[1]->items[0] : *call.items[1];
                const Variable* v = scope.find(at.text);
                if (v != nullptr && v->type.form == Form::Barrier)
                    f.derived = agents_->threads(at.text, v->type.columns, width_);
            }
        }
        if (s.kind == K::Simple && s.node->kind == Kind::Return) f.derived = interface(*def_of(scope));
        if (s.kind == K::Simple && s.node->kind == Kind::Assign) {
            const auto values = parts(s.node->items.back());
            if (values.size() == f.results.size())
                for (std::size_t k = 0; k < values.size(); ++k)
                    f.results[k].note = agents_->note(f.results[k].name, *values[k], barriers_);
        }
        record(s.body, *inner);
    }

    /// Threads of the role, as text: what collective statements name.
    void agent(const Statement& s) {
        for (const auto& k : s.node->items[0]->keywords)
            if (k.name == "warps" || k.name == "warpgroups") {
                width_ = k.name == "warps" ? "32 * " : "128 * ";
                threads_ = width_ + as_factor(syntax::print(*k.value));
            }
    }

    void loops_of(const std::vector<Statement>& body) {
        for (const auto& s : body) {
            if (s.kind == K::For) loops_.insert(loop_over(s));
            loops_of(s.body);
        }
    }

    /// Votes that have no name of their own are numbered in a role or a def: they are declared in its blocks.
    int number_votes(const std::vector<Statement>& body, int next) {
        for (const auto& s : body) {
            const int count = unnamed_votes(s);
            if (count > 0) {
                out_.facts[&s].vote = next;
                next += count;
            }
            if (s.kind == K::Def || s.kind == K::With)
                number_votes(s.body, 0);
            else
                next = number_votes(s.body, next);
        }
        return next;
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
        if (name == "classify" && node.items.size() > 2) name = node.items[2]->text;
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
    RoleScopes inner_;
    const Agents* agents_ = nullptr;
    std::set<std::string> loops_;
    std::string width_, threads_;
    int barriers_ = 1;
};

} // namespace

Analysis analyse(const cuir::Program& program) {
    return Analyser(program).run();
}

} // namespace cubridge::ir::lower
