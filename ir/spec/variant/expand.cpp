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
    Expr spread = nullptr; // what rounding a softmax's weights costs `out`, however it falls
};

struct Rounding { // nothing: exact
    std::optional<Op> operands{}, weights{};
};

/// What a kernel keeps in the narrow type: computed operands and weights. Tensors of the caller are in it already.
Expr narrow(const Variant& v, std::optional<Op> by, Expr e) {
    return by && (e->kind != Kind::Load || e->number > 2) ? v.pool->apply(*by, e) : e;
}

/// The most that rounding takes from a number, relative to it: half a step at the lower end of its power of two.
double largest_loss(Op round) {
    return std::ldexp(1, round == Op::RoundF16 ? -11 : -8);
}

Expr with_dot(const Variant& v, const Part& p, Expr e, std::optional<Op> by = {}) {
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
    const Expr zero = pool.real(0), keep = with_dot(v, p, p.keep, by.operands),
               gain = with_dot(v, p, p.gain, by.operands), value = narrow(v, by.operands, p.v);
    Rows r{nullptr, nullptr, some_key(v, p)};
    const auto sum = [&](Expr w) { return over_keys(v, p, ReduceOp::Sum, pool.select(keep, w, zero)); };
    const auto gained = [&](Expr w) { return gain ? pool.mul(w, gain) : w; };
    const auto weighted = [&](Expr w) { return pool.mul(narrow(v, by.weights, gained(w)), value); };
    // Relative to the row's maximum the largest weight is 1 and loses nothing, which few kernels can promise: they
    // round before they know it. Here it loses as much as a number can.
    const auto softmax = [&](Expr w) {
        if (!by.weights) return weighted(w);
        const double largest = 1 + 1.001 * largest_loss(*by.weights);
        return pool.mul(pool.real(1 / largest), weighted(pool.mul(pool.real(largest), w)));
    };
    // Losses of weights that differ are independent of each other: the root of the sum of their largest squares.
    const auto spread = [&](Expr w) {
        const Expr one = pool.mul(gained(w), value), all = pool.apply(Op::Sqrt, sum(pool.mul(one, one)));
        return pool.mul(pool.real(largest_loss(*by.operands)), all);
    };
    if (p.weights.kind != Weights::Kind::Softmax) {
        const Expr w = with_dot(v, p, p.weights.value, by.operands);
        r.out = sum(weighted(w));
        if (p.weights.kind == Weights::Kind::Ratio) {
            Expr mass = sum(w);
            if (p.weights.rest) mass = pool.add(mass, p.weights.rest);
            r.out = pool.apply(Op::Div, r.out, mass);
        }
        return r;
    }
    const Expr x = pool.select(keep, with_dot(v, p, p.score, by.operands), pool.real(-kInf));
    Expr m = over_keys(v, p, ReduceOp::Max, x);
    for (const Expr s : p.weights.extra) m = pool.apply(Op::Max, m, s);
    const Expr shift = pool.select(pool.apply(Op::Eq, m, pool.real(-kInf)), zero, m);
    const Expr e = pool.apply(Op::Exp, pool.sub(x, shift));
    Expr mass = over_keys(v, p, ReduceOp::Sum, e);
    for (const Expr s : p.weights.extra) mass = pool.add(mass, pool.apply(Op::Exp, pool.sub(s, shift)));
    r.lse = pool.add(shift, pool.apply(Op::Log, mass));
    r.out = pool.apply(Op::Div, sum(softmax(e)), mass);
    if (by.operands) r.spread = pool.apply(Op::Div, spread(e), mass);
    r.some = pool.logical_not(pool.apply(Op::Eq, m, pool.real(-kInf))); // a captured bias hides keys as well
    if (!p.weights.extra.empty() || empty == Part::Empty::Never) return r;
    Expr none = zero;
    if (empty == Part::Empty::NaN) none = pool.real(std::nan(""));
    if (empty == Part::Empty::Uniform) {
        const Expr keys = pool.cast(Type::Real, p.keys), all = gain ? pool.mul(gain, value) : value;
        none = pool.apply(Op::Div, over_keys(v, p, ReduceOp::Sum, all), keys);
    }
    r.out = pool.select(r.some, r.out, none);
    if (r.spread) r.spread = pool.select(r.some, r.spread, zero);
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

Expr distance(ExprPool& pool, Expr a, Expr b) {
    return pool.apply(Op::Abs, pool.sub(a, b));
}

/// How far off the output may be: what rounding operands costs, which the parts of `rows` do, and what their spreads
/// do. Null: no part has one.
Expr spread_of(const Scalar& scalar, const Variant& v, const std::vector<Rows>& rows, Expr exact) {
    ExprPool& pool = *v.pool;
    const Expr here = outputs(scalar, v, rows)[0].body;
    std::vector<Expr> moves;
    for (std::size_t k = 0; k < rows.size(); ++k) {
        if (!rows[k].spread) continue;
        std::vector<Rows> moved = rows;
        moved[k].out = pool.add(moved[k].out, moved[k].spread);
        moves.push_back(distance(pool, outputs(scalar, v, moved)[0].body, here));
    }
    if (moves.empty()) return nullptr;
    Expr off = moves[0];
    for (std::size_t k = 1; k < moves.size(); ++k)
        off = pool.apply(Op::Sqrt, pool.add(pool.mul(off, off), pool.mul(moves[k], moves[k])));
    return here == exact ? off : pool.add(off, distance(pool, here, exact));
}

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
    const auto rows = [&](Rounding by) {
        std::vector<Rows> out;
        for (const Part& p : v.parts) out.push_back(rows_of(v, p, p.empty, by));
        return out;
    };
    const std::vector<Rows> once = rows({round, round});
    Baseline out{scalar, v.row_is_empty, lse_of(v, {round, round})};
    out.scalar.pool = v.pool;
    out.scalar.facts = v.facts;
    out.scalar.out = outputs(scalar, v, once);
    ExprPool& pool = *v.pool;
    const Expr exact = outputs(scalar, v, rows({}))[0].body;
    if (const Expr off = spread_of(scalar, v, rows({round, {}}), exact)) {
        Expr& body = out.scalar.out[0].body;
        body = pool.add(exact, pool.apply(Op::Max, distance(pool, body, exact), off));
    }
    return out;
}

} // namespace cubridge::ir
