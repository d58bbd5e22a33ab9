// Where CUDA declares names. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/place.h"
#include "ir/lower/expression.h"
#include <algorithm>
#include <set>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;
using K = Statement::Kind;

namespace {

void names_of_target(const Node& node, std::vector<std::string>& out) {
    if (node.kind == Kind::Name) out.push_back(node.text);
    if (node.kind == Kind::Tuple)
        for (const auto& i : node.items) names_of_target(*i, out);
}

struct Block {
    int parent = -1;
    std::size_t at = 0; ///< of the statement that opens it, in the parent
    bool loop = false;
    const std::vector<Statement>* body = nullptr;
};

struct Occurrence {
    int block = 0;
    std::size_t at = 0;
    bool write = false, counter = false;
};

bool own_scope(const Statement& s) {
    return s.kind == K::Def || s.kind == K::With;
}

bool always_assigns(const std::vector<Statement>& body, const std::string& name) {
    for (std::size_t k = 0; k < body.size(); ++k) {
        const auto names = written_by(body[k]);
        if (body[k].kind == K::Simple && std::find(names.begin(), names.end(), name) != names.end()) return true;
        if (body[k].kind == K::If && k + 1 < body.size() && body[k + 1].kind == K::Else &&
            always_assigns(body[k].body, name) && always_assigns(body[k + 1].body, name))
            return true;
    }
    return false;
}

class Placer {
public:
    Placer(Scope& scope, Analysis& analysis, const std::map<const Statement*, int>& order)
        : scope_(scope), analysis_(analysis), order_(order) {}

    void run(const std::vector<Statement>& body) {
        blocks_.push_back({-1, 0, false, &body});
        visit(0);
        for (const auto& name : names_)
            if (scope_.variables.count(name) != 0 && !scope_.variables.at(name).given) settle(name, found_.at(name));
    }

private:
    void visit(int block) {
        const auto& body = *blocks_[static_cast<std::size_t>(block)].body;
        for (std::size_t at = 0; at < body.size(); ++at) {
            const Statement& s = body[at];
            note(s, block, at);
            if (own_scope(s)) {
                outer_reads(s, block, at, local_names(s));
            } else if (s.opens_block()) {
                blocks_.push_back({block, at, s.kind == K::For || s.kind == K::While, &s.body});
                visit(static_cast<int>(blocks_.size()) - 1);
            }
        }
    }

    void note(const Statement& s, int block, std::size_t at) {
        for (const auto& e : read_by(s))
            for (const auto& name : names_in(*e)) note(name, {block, at, false, false});
        if (own_scope(s)) return;
        for (const auto& name : written_by(s)) {
            note(name, {block, at, true, counts(s)});
            auto& v = scope_.variables[name];
            if (v.given && scope_.outer == nullptr)
                fail("no_rule", "`" + name + "` is a parameter or a constant", s.node->span, "use another name");
            ++v.writes;
        }
    }

    static std::set<std::string> local_names(const Statement& s) {
        std::set<std::string> out;
        const auto add = [&](const auto& self, const Statement& x) -> void {
            for (const auto& n : written_by(x)) out.insert(n);
            if (x.kind == K::Def)
                for (const auto& p : x.node->params) out.insert(p.name);
            for (const auto& y : x.body) self(self, y);
        };
        add(add, s);
        return out;
    }

    void outer_reads(const Statement& s, int block, std::size_t at, const std::set<std::string>& local) {
        for (const auto& x : s.body) {
            for (const auto& e : read_by(x))
                for (const auto& name : names_in(*e))
                    if (local.count(name) == 0) note(name, {block, at, false, false});
            outer_reads(x, block, at, local);
        }
    }

    void note(const std::string& name, Occurrence o) {
        auto& found = found_[name];
        if (found.empty()) names_.push_back(name);
        found.push_back(o);
    }

    const Block& block(int b) const { return blocks_[static_cast<std::size_t>(b)]; }

    int depth(int b) const {
        int d = 0;
        for (; block(b).parent >= 0; b = block(b).parent) ++d;
        return d;
    }

    /// The occurrence as one of block `b`, which contains it.
    Occurrence lifted(Occurrence o, int b) const {
        while (o.block != b) {
            o.at = block(o.block).at;
            o.block = block(o.block).parent;
            o.write = false;
        }
        return o;
    }

    int common(const std::vector<Occurrence>& found) const {
        int b = found[0].block;
        for (const auto& o : found) {
            int c = o.block;
            while (b != c) {
                if (depth(b) >= depth(c))
                    b = block(b).parent;
                else
                    c = block(c).parent;
            }
        }
        return b;
    }

    void settle(const std::string& name, const std::vector<Occurrence>& found) {
        auto& variable = scope_.variables.at(name);
        if (std::any_of(found.begin(), found.end(), [](const auto& o) { return o.counter; }))
            return counter(name, found);
        int b = common(found);
        Occurrence first = lifted(found[0], b);
        const Statement* s = &(*block(b).body)[first.at];
        const bool direct = found[0].block == b;
        if (direct && found[0].write) return declare(name, *s, variable, found);
        std::vector<std::vector<Occurrence>> apart;
        if (in_parts(found, apart)) {
            for (auto part = apart.rbegin(); part != apart.rend(); ++part)
                declare(name, (*block(common(*part)).body)[(*part)[0].at], variable, *part);
            return;
        }
        const auto& body = *block(b).body;
        const bool sure = !direct && s->kind == K::If && first.at + 1 < body.size() &&
                          body[first.at + 1].kind == K::Else && always_assigns(s->body, name) &&
                          always_assigns(body[first.at + 1].body, name);
        if (!sure) // it may carry a value from one iteration to the next
            for (int c = b; c >= 0; c = block(c).parent)
                if (block(c).loop) b = block(c).parent;
        first = lifted(found[0], b);
        s = &(*block(b).body)[first.at];
        if (s->kind == K::Else) s = &(*block(b).body)[first.at - 1];
        variable.first = order_.at(s);
        if (!s->opens_block() || own_scope(*s)) return fail_unassigned(name, *s);
        analysis_.facts[s].before.push_back({name, {}, true, false});
    }

    [[noreturn]] static void fail_unassigned(const std::string& name, const Statement& s) {
        located(s, [&] { fail("no_rule", "`" + name + "` is read before it is assigned"); });
        fail("no_rule", "`" + name + "` is read before it is assigned");
    }

    /// Whether a name's uses fall into blocks, each of which assigns it first: then each declares its own.
    bool in_parts(const std::vector<Occurrence>& found, std::vector<std::vector<Occurrence>>& out) const {
        const int b = common(found);
        if (found[0].block == b) {
            out.push_back(found);
            return found[0].write;
        }
        std::map<std::size_t, std::vector<Occurrence>> parts;
        for (const auto& o : found) {
            if (o.block == b) return false;
            parts[lifted(o, b).at].push_back(o);
        }
        return std::all_of(parts.begin(), parts.end(), [&](const auto& p) { return in_parts(p.second, out); });
    }

    void declare(const std::string& name, const Statement& s, Variable& variable,
                 const std::vector<Occurrence>& found) {
        variable.first = order_.at(&s);
        const auto writes = std::count_if(found.begin(), found.end(), [](const auto& o) { return o.write; });
        for (auto& r : analysis_.facts[&s].results)
            if (r.name == name) {
                r.declares = true;
                r.constant = writes == 1;
            }
    }

    void counter(const std::string& name, const std::vector<Occurrence>& found) {
        for (const auto& o : found) {
            if (o.counter) {
                const Statement& s = (*block(o.block).body)[o.at];
                for (auto& r : analysis_.facts[&s].results) r.declares = r.declares || r.name == name;
                continue;
            }
            bool inside = false;
            for (int b = o.block; b > 0 && !inside; b = block(b).parent) {
                const Statement& s = (*block(block(b).parent).body)[block(b).at];
                const auto names = written_by(s);
                inside = counts(s) && std::find(names.begin(), names.end(), name) != names.end();
            }
            if (!inside || o.write)
                located((*block(o.block).body)[o.at], [&] {
                    fail("no_rule", "`" + name + "` counts a loop: nothing else assigns it, and it ends with the loop");
                });
        }
    }

    Scope& scope_;
    Analysis& analysis_;
    const std::map<const Statement*, int>& order_;
    std::vector<Block> blocks_;
    std::map<std::string, std::vector<Occurrence>> found_;
    std::vector<std::string> names_; ///< in order of their first occurrence
};

void prepare(Scope& scope, const std::vector<Statement>& body, Analysis& analysis) {
    for (const auto& s : body) {
        Facts& f = analysis.facts[&s];
        f.scope = &scope;
        if (own_scope(s)) continue;
        for (const auto& name : written_by(s)) f.results.push_back({name, {}, false, false});
        prepare(scope, s.body, analysis);
    }
}

} // namespace

std::vector<std::string> written_by(const Statement& s) {
    std::vector<std::string> out;
    if (s.kind == K::Simple && s.node->kind == Kind::Assign)
        for (std::size_t k = 0; k + 1 < s.node->items.size(); ++k) names_of_target(*s.node->items[k], out);
    if (s.kind == K::Simple && s.node->kind == Kind::AugAssign) names_of_target(*s.node->items[0], out);
    if (s.kind == K::For) names_of_target(*s.node->items[0], out);
    if (s.kind == K::With)
        for (const auto& n : s.node->names)
            if (!n.empty()) out.push_back(n);
    return out;
}

std::vector<NodePtr> read_by(const Statement& s) {
    std::vector<NodePtr> out;
    if (!s.node) return out;
    const Node& n = *s.node;
    switch (s.kind) {
    case K::Simple:
        if (n.kind == Kind::Assign) {
            out.push_back(n.items.back());
            for (std::size_t k = 0; k + 1 < n.items.size(); ++k)
                for (const auto& t : parts(n.items[k]))
                    if (t->kind == Kind::Subscript) out.push_back(t);
        } else if (n.kind == Kind::AugAssign || n.kind == Kind::ExprStmt || n.kind == Kind::Return) {
            for (const auto& i : n.items)
                if (i) out.push_back(i);
        }
        break;
    case K::If:
    case K::While:
    case K::With: out = n.items; break;
    case K::For: out.push_back(n.items[1]); break;
    default: break;
    }
    return out;
}

bool counts(const Statement& s) {
    if (s.kind != K::For) return false;
    const std::string over = callee(*s.node->items[1]);
    return over == "range" || over == "each" || over == "enumerate";
}

std::string loop_over(const Statement& s) {
    const Node* over = s.node->items[1].get();
    if (callee(*over) == "enumerate" && over->items.size() == 2) over = over->items[1].get();
    const std::string f = callee(*over);
    return f == "bind" || f == "draw" ? f : "";
}

int unnamed_votes(const Statement& s) {
    const auto count = [](const auto& self, const Node& n) -> int {
        int out = callee(n) == "any" ? 1 : 0;
        for (const auto& i : n.items)
            if (i) out += self(self, *i);
        return out;
    };
    int out = 0;
    for (const auto& e : read_by(s)) out += count(count, *e);
    const bool named = s.kind == K::Simple && s.node->kind == Kind::Assign && s.node->items[0]->kind == Kind::Name &&
                       callee(*s.node->items.back()) == "any";
    return named ? out - 1 : out;
}

void place(Scope& scope, const std::vector<Statement>& body, Analysis& analysis,
           const std::map<const Statement*, int>& order) {
    prepare(scope, body, analysis);
    Placer(scope, analysis, order).run(body);
}

} // namespace cubridge::ir::lower
