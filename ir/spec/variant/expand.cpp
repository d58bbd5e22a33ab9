// What a Variant means, as expressions over the specification's inputs. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/variant/carry.h"
#include "ir/spec/variant/match.h"
#include <cmath>
#include <limits>

namespace cubridge::ir {

namespace {

constexpr double kInf = HUGE_VAL;

struct Rows { // of one part, over b, h, i (and d)
    Expr out, lse, some;
};

using Rounding = std::optional<Op>; // nothing: exact

/// What a kernel keeps in the narrow type: computed operands and weights. Tensors of the caller are in it already.
Expr narrow(const Variant& v, Rounding by, Expr e) {
    return by && (e->kind != Kind::Load || e->number > 2) ? v.pool->apply(*by, e) : e;
}

Expr with_dot(const Variant& v, const Part& p, Expr e, Rounding by = {}) {
    ExprPool& pool = *v.pool;
    if (!e) return e;
    const Expr products = pool.mul(narrow(v, by, p.q), narrow(v, by, p.k));
    const Expr dot = pool.reduce(ReduceOp::Sum, products, axis::c, p.inner);
    return pool.rewrite(e, [&](Expr x) { return x->kind == Kind::Load && x->number == kScore ? dot : x; });
}

Expr over_keys(const Variant& v, const Part& p, ReduceOp op, Expr body) {
    return v.pool->reduce(op, body, axis::j, p.keys);
}

Expr some_key(const Variant& v, const Part& p) {
    return over_keys(v, p, ReduceOp::Any, with_dot(v, p, p.keep));
}

Rows rows_of(const Variant& v, const Part& p, Part::Empty empty, Rounding by = {}) {
    ExprPool& pool = *v.pool;
    const Expr zero = pool.real(0), keep = with_dot(v, p, p.keep, by), gain = with_dot(v, p, p.gain, by);
    const Expr value = narrow(v, by, p.v);
    Rows r{nullptr, nullptr, some_key(v, p)};
    const auto sum = [&](Expr w) { return over_keys(v, p, ReduceOp::Sum, pool.select(keep, w, zero)); };
    const auto weighted = [&](Expr w) { return pool.mul(narrow(v, by, gain ? pool.mul(w, gain) : w), value); };
    // A kernel may round its weights relative to any reference, and few know the largest score when they do. Relative
    // to that one the largest weight is 1 and loses nothing, which peaked rows can't be held to: here it loses as much
    // as a number can, half a step at the lower end of its power of two.
    const auto softmax = [&](Expr w) {
        if (!by) return weighted(w);
        const double largest = 1 + std::ldexp(1.001, *by == Op::RoundF16 ? -11 : -8);
        return pool.mul(pool.real(1 / largest), weighted(pool.mul(pool.real(largest), w)));
    };
    if (p.weights.kind != Weights::Kind::Softmax) {
        const Expr w = with_dot(v, p, p.weights.value, by);
        r.out = sum(weighted(w));
        if (p.weights.kind == Weights::Kind::Ratio) {
            Expr mass = sum(w);
            if (p.weights.rest) mass = pool.add(mass, p.weights.rest);
            r.out = pool.apply(Op::Div, r.out, mass);
        }
        return r;
    }
    const Expr x = pool.select(keep, with_dot(v, p, p.score, by), pool.real(-kInf));
    Expr m = over_keys(v, p, ReduceOp::Max, x);
    for (const Expr s : p.weights.extra) m = pool.apply(Op::Max, m, s);
    const Expr shift = pool.select(pool.apply(Op::Eq, m, pool.real(-kInf)), zero, m);
    const Expr e = pool.apply(Op::Exp, pool.sub(x, shift));
    Expr mass = over_keys(v, p, ReduceOp::Sum, e);
    for (const Expr s : p.weights.extra) mass = pool.add(mass, pool.apply(Op::Exp, pool.sub(s, shift)));
    r.lse = pool.add(shift, pool.apply(Op::Log, mass));
    r.out = pool.apply(Op::Div, sum(softmax(e)), mass);
    r.some = pool.logical_not(pool.apply(Op::Eq, m, pool.real(-kInf))); // a captured bias hides keys as well
    if (!p.weights.extra.empty() || empty == Part::Empty::Never) return r;
    Expr none = zero;
    if (empty == Part::Empty::NaN) none = pool.real(std::nan(""));
    if (empty == Part::Empty::Uniform) {
        const Expr keys = pool.cast(Type::Real, p.keys), all = gain ? pool.mul(gain, value) : value;
        none = pool.apply(Op::Div, over_keys(v, p, ReduceOp::Sum, all), keys);
    }
    r.out = pool.select(r.some, r.out, none);
    return r;
}

Expr assemble(const Variant& v, Expr e, const std::vector<Rows>& rows) {
    ExprPool& pool = *v.pool;
    return pool.rewrite(e, [&](Expr x) -> Expr {
        if (x->kind != Kind::Load || x->number < kOutput) return x;
        const bool lse = x->number >= kLse;
        const auto n = static_cast<std::size_t>(x->number - (lse ? kLse : kOutput));
        const Expr body = lse ? rows[n].lse : rows[n].out;
        std::vector<Expr> map(axis::Count);
        for (std::size_t k = 0; k < 3; ++k) map[k] = x->args[k];
        if (!lse) map[axis::d] = x->args[3];
        return pool.substitute(body, map);
    });
}

std::vector<ScalarOutput> outputs(const Scalar& scalar, const Variant& v, const std::vector<Rows>& rows) {
    std::vector<Expr> map(axis::Count);
    map[axis::d] = v.pool->index(3);
    std::vector<ScalarOutput> out = scalar.out;
    out[0].body = v.pool->substitute(assemble(v, v.out, rows), map);
    if (out.size() > 1) out[1].body = assemble(v, v.lse, rows);
    return out;
}

} // namespace

namespace variant {

std::vector<ScalarOutput> expand(const Scalar& scalar, const Variant& v, Part::Empty empty) {
    std::vector<Rows> rows;
    for (const Part& p : v.parts) rows.push_back(rows_of(v, p, p.empty == Part::Empty::Never ? p.empty : empty));
    return outputs(scalar, v, rows);
}

std::set<int> additive_biases(const Variant& v) {
    std::set<int> added, elsewhere;
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr e) -> void {
        if (!e || !seen.insert(e).second) return;
        if (e->kind == Kind::Load && e->number > 2 && e->number < kScore) elsewhere.insert(e->number);
        for (const Expr a : e->args) self(self, a);
    };
    visit(visit, v.out), visit(visit, v.lse);
    for (const Part& p : v.parts) {
        for (const Expr e : {p.q, p.k, p.v, p.keep, p.gain, p.weights.value, p.weights.rest}) visit(visit, e);
        for (const Expr e : p.weights.extra) visit(visit, e);
        if (!p.score || p.score->kind != Kind::Sum || p.weights.kind != Weights::Kind::Softmax) {
            visit(visit, p.score);
            continue;
        }
        for (std::size_t k = 0; k < p.score->args.size(); ++k) {
            const Expr t = p.score->args[k];
            if (t->kind != Kind::Load || t->number <= 2 || t->number >= kScore || p.score->rcoef[k] <= 0) {
                visit(visit, t);
                continue;
            }
            added.insert(t->number);
            for (const Expr a : t->args) visit(visit, a);
        }
    }
    for (const int x : elsewhere) added.erase(x);
    return added;
}

} // namespace variant

Expr empty_row(const Variant& v) {
    Expr none = nullptr;
    ExprPool& pool = *v.pool;
    for (const Part& p : v.parts) {
        // with a sink a row without keys is not empty; weights without a normaliser give 0 by themselves
        const Expr here = p.weights.extra.empty() ? pool.logical_not(some_key(v, p)) : pool.boolean(false);
        none = none ? pool.logical_and(none, here) : here;
    }
    return none;
}

Expr some_empty_row(const Variant& v) {
    ExprPool& pool = *v.pool;
    Expr any = pool.boolean(false);
    for (const Part& p : v.parts)
        if (p.empty == Part::Empty::Other) any = pool.logical_or(any, pool.logical_not(some_key(v, p)));
    return any;
}

namespace {

Expr lse_of(const Variant& v, Rounding by) {
    if (v.lse) return nullptr; // the text returns it
    if (v.parts.size() != 1 || v.parts[0].weights.kind != Weights::Kind::Softmax) return nullptr;
    return rows_of(v, v.parts[0], Part::Empty::Zero, by).lse;
}

} // namespace

Expr natural_lse(const Variant& v) {
    return lse_of(v, {});
}

Baseline baseline(const Scalar& scalar, const Variant& variant, Op round) {
    Variant all = variant;
    all.facts = scalar.facts; // carried along: they may read the tables of the same pool
    const Variant v = carry(all, false);
    std::vector<Rows> rows;
    for (const Part& p : v.parts) rows.push_back(rows_of(v, p, p.empty, round));
    Baseline out{scalar, v.row_is_empty, lse_of(v, round)};
    out.scalar.pool = v.pool;
    out.scalar.facts = v.facts;
    out.scalar.out = outputs(scalar, v, rows);
    return out;
}

} // namespace cubridge::ir
