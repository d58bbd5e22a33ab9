// From expressions to steps. Every Reduce is renamed to its own parameters, so that s(j) under max and under sum is one
// template; the template becomes a table of the prologue, a value or vector of the row, or, where that would be too
// large, a loop printed at each use. SPDX-License-Identifier: Apache-2.0
#include "ir/generic/steps.h"
#include "ir/generic/cost.h"
#include <algorithm>
#include <set>

namespace cubridge::ir::generic {

std::uint64_t Program::rate(Expr e) const {
    if (const auto it = rates_.find(e); it != rates_.end()) return it->second;
    std::uint64_t r = 0;
    if (e->kind == Kind::Index) r = index_bit(e->number);
    if (e->kind == Kind::Dim && (e->number == dims::Sq || e->number == dims::Sk)) r = index_bit(0);
    if (e->kind == Kind::Load || e->kind == Kind::Arg) {
        if (e->number >= kStep) {
            const Step& s = steps[static_cast<std::size_t>(e->number - kStep)];
            if (s.per_row) r = index_bit(0) | index_bit(1) | index_bit(2);
            if (s.over_request) r |= index_bit(0);
            if (s.over_head) r |= index_bit(1);
        } else if (e->number < 3 || prepared.inputs[static_cast<std::size_t>(e->number)].fate != Input::Fate::Bound) {
            r = index_bit(0); // lengths, and each request's own copy of an operand
        }
    }
    for (const Expr a : e->args) r |= rate(a);
    rates_.emplace(e, r);
    return r;
}

namespace {

constexpr std::uint64_t kRow = index_bit(2);
constexpr std::uint64_t kVariables = 0xffff & ~(index_bit(0) | index_bit(1) | kRow);
constexpr std::int64_t kMaxConstantAxes = 4096; ///< elements that constant axes may multiply a table of the row by
constexpr int kWorthARow = 6, kWorthAPrologue = 40;

/// A Reduce or elementwise value over parameters Index(4), ...: a step, or an expression to print at each use.
struct Template {
    int step = -1;
    Expr inlined = nullptr;
    std::vector<std::set<Expr>> extents; ///< of each parameter, over all uses
};
/// Parameter `from` of template `user` is parameter `to` of template `used`: its extents reach it.
struct Edge {
    int user, from, used, to;
};
/// Where an expression stands: the template that contains it and the extents of the variables around it.
struct Place {
    int self = -1; ///< -1: an output
    int parameters = 0;
    std::array<Expr, kMaxIndex> extent{};
    bool per_row = true;
};

class Planner {
public:
    explicit Planner(Prepared prepared) { program_.prepared = std::move(prepared); }

    Program run() {
        Prepared& p = program_.prepared;
        const auto output = [&](Expr e) {
            Place top;
            top.extent[3] = pool().integer(p.request.head_dim_v);
            return e == nullptr ? nullptr : lower(e, top);
        };
        program_.empty = output(p.empty);
        program_.lse = output(p.lse);
        program_.out = output(p.out);
        spread_extents();
        return std::move(program_);
    }

private:
    ExprPool& pool() { return *program_.prepared.pool; }

    Expr lower(Expr e, const Place& at) {
        std::unordered_map<Expr, Expr> done;
        const auto visit = [&](auto&& self, Expr x) -> Expr {
            if (x->height == 0) return x;
            if (const auto it = done.find(x); it != done.end()) return it->second;
            Expr r = nullptr;
            if (x->kind == Kind::Reduce) {
                r = use(x, at);
            } else {
                std::vector<Expr> args;
                for (const Expr a : x->args) args.push_back(self(self, a));
                r = pool().with_args(x, std::move(args));
            }
            done.emplace(x, r);
            return r;
        };
        return visit(visit, e);
    }

    /// `e`, a Reduce of the text or a lowered elementwise value, as a use of its template.
    Expr use(Expr e, const Place& at) {
        const std::vector<int> actual = variables(e);
        std::vector<Expr> map(kMaxIndex, nullptr), back(kMaxIndex, nullptr);
        for (std::size_t k = 0; k < actual.size(); ++k) {
            const int parameter = kFirstParameter + static_cast<int>(k);
            if (parameter + 1 >= kMaxIndex) fail("unsupported", "reductions are nested more than 10 deep");
            map[static_cast<std::size_t>(actual[k])] = pool().index(parameter);
            back[static_cast<std::size_t>(parameter)] = pool().index(actual[k]);
        }
        const Expr key = pool().substitute(e, map);
        int number = -1;
        if (const auto it = known_.find(key); it != known_.end()) {
            number = it->second;
        } else {
            number = static_cast<int>(templates_.size());
            templates_.emplace_back();
            templates_.back().extents.resize(actual.size());
            Place inside;
            inside.self = number;
            inside.parameters = static_cast<int>(actual.size());
            for (std::size_t k = 0; k < actual.size(); ++k)
                inside.extent[kFirstParameter + k] = at.extent[static_cast<std::size_t>(actual[k])];
            build(key, inside);
            known_.emplace(key, number);
        }
        for (std::size_t k = 0; k < actual.size(); ++k) {
            const int v = actual[k];
            if (at.self >= 0 && v >= kFirstParameter && v < kFirstParameter + at.parameters)
                edges_.push_back({at.self, v - kFirstParameter, number, static_cast<int>(k)});
            else
                template_at(number).extents[k].insert(at.extent[static_cast<std::size_t>(v)]);
        }
        const Template& t = template_at(number);
        if (t.step < 0) return pool().substitute(t.inlined, back);
        std::vector<Expr> where;
        for (const int v : actual) where.push_back(pool().index(v));
        return pool().load(kStep + t.step, e->type, std::move(where));
    }

    /// Free variables beyond b, h, i in order of appearance.
    static std::vector<int> variables(Expr root) {
        std::vector<int> found;
        std::set<Expr> seen;
        const auto visit = [&](auto&& self, Expr e) -> void {
            if ((e->free & kVariables) == 0 || !seen.insert(e).second) return;
            if (e->kind == Kind::Index) found.push_back(e->number);
            for (const Expr a : e->args) self(self, a);
        };
        visit(visit, root);
        return found;
    }

    void build(Expr e, Place& at) {
        Step s;
        s.type = e->type;
        s.body = e;
        if (e->kind == Kind::Reduce) {
            s.reduces = true;
            s.op = e->reduce;
            s.variable = kFirstParameter + at.parameters;
            s.extent = e->args[1];
            at.extent[static_cast<std::size_t>(s.variable)] = s.extent;
            const Expr body = pool().open(e, pool().index(s.variable));
            at.per_row = (program_.rate(e) & kRow) != 0;
            const std::uint64_t inner = index_bit(s.variable);
            std::uint64_t loops = inner;
            for (int k = 0; k < at.parameters; ++k) loops |= index_bit(kFirstParameter + k);
            s.body = keep(lower(body, at), at, loops, inner);
        }
        Template& t = template_at(at.self);
        if (store(s, at)) {
            t.step = static_cast<int>(program_.steps.size());
            program_.steps.push_back(std::move(s));
        } else {
            t.inlined = s.reduces ? pool().reduce(s.op, s.body, s.variable, s.extent) : e;
        }
    }

    /// Decides whether the step's values can be kept, and where.
    bool store(Step& s, const Place& at) {
        const std::uint64_t rate = program_.rate(s.body) | (s.reduces ? program_.rate(s.extent) : 0);
        s.per_row = (rate & kRow) != 0;
        s.over_request = !s.per_row && (rate & index_bit(0)) != 0;
        s.over_head = !s.per_row && (rate & index_bit(1)) != 0;
        if (s.reduces && (program_.rate(s.extent) & ~index_bit(0)) != 0) return false; // nothing to loop over by itself
        std::int64_t constants = 1;
        int large = 0;
        for (int k = 0; k < at.parameters; ++k) {
            const Expr extent = at.extent[static_cast<std::size_t>(kFirstParameter + k)];
            if (extent == nullptr || !range(program_.prepared, extent).high) return false;
            if (is_const(extent))
                constants *= std::clamp<std::int64_t>(extent->integer, 1, 1 << 20);
            else
                ++large;
            if (constants > (1 << 20)) return false;
        }
        if (large > 1 || (s.per_row && at.parameters > 1 && constants > kMaxConstantAxes)) return false;
        if (s.per_row) return true;
        s.level = 1 + deepest(s.body);
        if (s.level >= program_.prepared.options.max_entries) return false;
        program_.levels = std::max(program_.levels, s.level);
        if (s.over_head) divide_heads(s);
        return true;
    }

    static bool is_step(Expr e) { return (e->kind == Kind::Load || e->kind == Kind::Arg) && e->number >= kStep; }
    const Step& step_of(Expr e) const { return program_.steps[static_cast<std::size_t>(e->number - kStep)]; }

    int deepest(Expr root) const {
        int level = 0;
        std::set<Expr> seen;
        const auto visit = [&](auto&& self, Expr e) -> void {
            if (!seen.insert(e).second) return;
            if (is_step(e)) level = std::max(level, step_of(e).level);
            for (const Expr a : e->args) self(self, a);
        };
        visit(visit, root);
        return level;
    }

    /// A table that depends on h through h // c alone has one entry per c heads: per KV head, mostly.
    void divide_heads(Step& s) {
        std::int64_t divisor = 0;
        bool alike = true;
        const auto divided_by = [&](std::int64_t by) {
            alike = alike && (divisor == 0 || divisor == by);
            divisor = by;
        };
        std::set<Expr> seen;
        const auto visit = [&](auto&& self, Expr e) -> void {
            if (!seen.insert(e).second) return;
            if (e->kind == Kind::Index && e->number == 1) alike = false;
            if (is_step(e) && step_of(e).over_head) divided_by(step_of(e).head_divisor);
            if (e->kind == Kind::FloorDiv && e->args[0] == pool().index(1) && is_const(e->args[1]))
                return divided_by(e->args[1]->integer);
            for (const Expr a : e->args) self(self, a);
        };
        visit(visit, s.body);
        if (!alike || divisor < 2) return;
        s.head_divisor = divisor;
        s.body = pool().rewrite(s.body, [&](Expr e) {
            return e->kind == Kind::FloorDiv && e->args[0] == pool().index(1) ? pool().index(1) : e;
        });
    }

    /// Takes out of a loop's body what is worth keeping: values that vary with the innermost variable, `inner`, and not
    /// with all `loops` around them (the weight of a key, under the sum for each column), or not with the row.
    Expr keep(Expr e, const Place& at, std::uint64_t loops, std::uint64_t inner) {
        Costs cost;
        std::unordered_map<Expr, Expr> done;
        const auto visit = [&](auto&& self, Expr x) -> Expr {
            if (x->args.empty() || (x->kind == Kind::Load && x->number >= kStep)) return x;
            const std::uint64_t rate = program_.rate(x);
            if ((rate & inner) == 0 || x->kind == Kind::Reduce) return x;
            if (const auto it = done.find(x); it != done.end()) return it->second;
            Expr r = x;
            const bool lower_row = at.per_row && (rate & kRow) == 0;
            const bool fewer = (rate & loops) != loops;
            if ((fewer || lower_row) && cost(x) >= (at.per_row && !lower_row ? kWorthARow : kWorthAPrologue) &&
                storable(x, at, rate)) {
                r = use(x, at);
            } else {
                if (x->kind == Kind::Product) x = grouped(x, at, loops, inner, cost);
                std::vector<Expr> args;
                for (const Expr a : x->args) args.push_back(self(self, a));
                r = pool().with_args(x, std::move(args));
            }
            done.emplace(x, r);
            return r;
        };
        return visit(visit, e);
    }

    bool storable(Expr e, const Place& at, std::uint64_t rate) {
        if (at.per_row && (rate & kRow) != 0) {
            int count = 0;
            for (int v = 3; v < kMaxIndex; ++v) count += (rate & index_bit(v)) != 0 ? 1 : 0;
            if (count != 1) return false;
        }
        return e->type != Type::Bool && (at.per_row || (rate & kRow) == 0);
    }

    /// Factors of a product taken together into steps: those without the row (a key's transform), then those that vary
    /// with `inner` alone and those of the row (a weight and its normaliser).
    Expr grouped(Expr x, const Place& at, std::uint64_t loops, std::uint64_t inner, Costs& cost) {
        if (at.per_row)
            x = group(x, at, inner, cost, kWorthAPrologue, [](std::uint64_t rate) { return (rate & kRow) == 0; });
        return group(x, at, inner, cost, at.per_row ? kWorthARow : kWorthAPrologue, [&](std::uint64_t rate) {
            return (rate & loops & ~inner) == 0 && (!at.per_row || (rate & inner) == 0 || (rate & kRow) != 0);
        });
    }

    template <class In>
    Expr group(Expr x, const Place& at, std::uint64_t inner, Costs& cost, int worth, const In& belongs) {
        if (x->kind != Kind::Product) return x;
        std::vector<ExprPool::Power> group, rest;
        bool varies = false;
        for (std::size_t k = 0; k < x->args.size(); ++k) {
            const std::uint64_t rate = program_.rate(x->args[k]);
            const bool in = belongs(rate);
            varies = varies || (in && (rate & inner) != 0);
            (in ? group : rest).push_back({x->args[k], x->num[k], x->den[k]});
        }
        if (!varies || rest.empty() || group.size() < 2) return x;
        const Expr together = pool().product(x->type, group);
        if (cost(together) < worth || !storable(together, at, program_.rate(together))) return x;
        rest.push_back({use(together, at), 1, 1});
        return pool().product(x->type, std::move(rest));
    }

    /// Every step's parameters reach as far as any use of it does.
    void spread_extents() {
        for (bool changed = true; changed;) {
            changed = false;
            for (const Edge& e : edges_) {
                const auto& from = template_at(e.user).extents[static_cast<std::size_t>(e.from)];
                auto& to = template_at(e.used).extents[static_cast<std::size_t>(e.to)];
                for (const Expr x : from) changed = to.insert(x).second || changed;
            }
        }
        for (const Template& t : templates_) {
            if (t.step < 0) continue;
            Step& s = program_.steps[static_cast<std::size_t>(t.step)];
            for (const auto& all : t.extents) {
                std::vector<Expr> sorted(all.begin(), all.end());
                std::sort(sorted.begin(), sorted.end(), [](Expr a, Expr b) { return a->id < b->id; });
                const Expr extent = sorted.size() == 1 ? sorted[0] : pool().extremum(Kind::Max, sorted);
                const auto high = range(program_.prepared, extent).high;
                if (!high) fail("unsupported", "a table of a size that no launch bounds");
                s.extents.push_back(extent);
                s.sizes.push_back(launch::Code::binary(launch::Code::Do::Max, *high, launch::Code::constant(0)));
            }
        }
    }

    Template& template_at(int k) { return templates_[static_cast<std::size_t>(k)]; }

    Program program_;
    std::unordered_map<Expr, int> known_;
    std::vector<Template> templates_;
    std::vector<Edge> edges_;
};

} // namespace

Program plan_steps(Prepared prepared) {
    return Planner(std::move(prepared)).run();
}

} // namespace cubridge::ir::generic
