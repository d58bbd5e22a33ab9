// Truth values: flattened, sorted, deduplicated; negation is pushed into the atoms. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir {

namespace {

bool contains(const std::vector<Expr>& x, Expr e) {
    return std::find(x.begin(), x.end(), e) != x.end();
}

// Does `part`, seen as a set of conjuncts (or disjuncts), hold all of `all`?
bool implies_by_parts(Expr part, Expr all, Kind inner) {
    if (part->kind != inner) return false;
    if (all->kind != inner) return contains(part->args, all);
    return std::all_of(all->args.begin(), all->args.end(), [&](Expr e) { return contains(part->args, e); });
}

bool decides_as_integers(Expr e) { // a float that is an integer, exactly
    return is_const(e) ? std::abs(e->real) <= 1e15 && e->real == std::trunc(e->real)
                       : e->kind == Kind::Cast && e->args[0]->type == Type::Int;
}

} // namespace

Expr ExprPool::logic(Kind kind, std::vector<Expr> x) {
    const bool conjunction = kind == Kind::And;
    std::vector<Expr> flat;
    for (const Expr e : x) {
        if (e->kind == kind)
            flat.insert(flat.end(), e->args.begin(), e->args.end());
        else
            flat.push_back(e);
    }
    meter_.spend(flat.size());
    std::sort(flat.begin(), flat.end(), [](Expr a, Expr b) { return a->id < b->id; });
    flat.erase(std::unique(flat.begin(), flat.end()), flat.end());
    std::vector<Expr> kept;
    for (const Expr e : flat) {
        if (is_const(e)) {
            if ((e->integer != 0) == conjunction) continue;
            return e;
        }
        kept.push_back(e);
    }
    meter_.spend(kept.size() * kept.size() / 16);
    for (const Expr e : kept) // of atoms only: negating a whole tree here would take exponential time
        if (e->kind != Kind::And && e->kind != Kind::Or && contains(kept, logical_not(e))) return boolean(!conjunction);
    const Kind inner = conjunction ? Kind::Or : Kind::And;
    std::vector<Expr> absorbed; // a or (a and b) is a
    constexpr std::size_t kMaxQuadratic = 64;
    const auto implies = [&](Expr e, Expr o) {
        if (o == e || e->kind != inner) return false;
        meter_.spend(1 + o->args.size() * e->args.size() / 16);
        return implies_by_parts(e, o, inner);
    };
    for (const Expr e : kept)
        if (kept.size() > kMaxQuadratic ||
            std::none_of(kept.begin(), kept.end(), [&](Expr o) { return implies(e, o); }))
            absorbed.push_back(e);
    if (absorbed.empty()) return boolean(conjunction);
    if (absorbed.size() == 1) return absorbed[0];
    ExprNode n{.kind = kind, .type = Type::Bool};
    n.args = std::move(absorbed);
    return intern(std::move(n));
}

Expr ExprPool::logical_and(std::vector<Expr> x) {
    return logic(Kind::And, std::move(x));
}
Expr ExprPool::logical_or(std::vector<Expr> x) {
    return logic(Kind::Or, std::move(x));
}

namespace detail {

Expr negate(ExprPool& p, Expr e) {
    p.meter().spend(1);
    switch (e->kind) {
    case Kind::Const: return p.boolean(e->integer == 0);
    case Kind::Not: return e->args[0];
    case Kind::And:
    case Kind::Or: {
        std::vector<Expr> x;
        for (const Expr a : e->args) x.push_back(negate(p, a));
        return e->kind == Kind::And ? p.logical_or(std::move(x)) : p.logical_and(std::move(x));
    }
    case Kind::Cmp: // not (x <= 0) is -x + 1 <= 0 for integers; a NaN forbids it for reals
        if (e->args.size() == 1 && e->op == Op::Le) return int_compare(p, Op::Le, p.isum(1, {{-1, e->args[0]}}));
        break;
    case Kind::Select: return p.select(e->args[0], negate(p, e->args[1]), negate(p, e->args[2]));
    default: break;
    }
    ExprNode n{.kind = Kind::Not, .type = Type::Bool};
    n.args = {e};
    return p.intern(std::move(n));
}

Expr compare(ExprPool& p, Op op, Expr a, Expr b) {
    if (op == Op::Ne) return p.logical_not(compare(p, Op::Eq, a, b));
    if (op == Op::Gt) return compare(p, Op::Lt, b, a);
    if (op == Op::Ge) return compare(p, Op::Le, b, a);
    if (a->type == Type::Bool && op == Op::Eq) {
        const Expr no_b = p.logical_not(b), neither = p.logical_and(p.logical_not(a), no_b);
        return p.logical_or(p.logical_and(a, b), neither);
    }
    if (a->type == Type::Bool) return compare(p, op, p.cast(Type::Int, a), p.cast(Type::Int, b));
    if (a->type == Type::Int) {
        const Expr d = p.sub(a, b);
        return int_compare(p, op == Op::Eq ? Op::Eq : Op::Le, op == Op::Lt ? p.isum(1, {{1, d}}) : d);
    }
    if (decides_as_integers(a) && decides_as_integers(b)) {
        const auto whole = [&](Expr e) {
            return is_const(e) ? p.integer(static_cast<std::int64_t>(e->real)) : e->args[0];
        };
        return compare(p, op, whole(a), whole(b));
    }
    if (is_const(a) && is_const(b))
        return p.boolean(op == Op::Lt ? a->real < b->real : op == Op::Le ? a->real <= b->real : a->real == b->real);
    for (const bool left : {true, false}) { // a choice between constants against a constant
        const Expr s = left ? a : b, k = left ? b : a;
        if (s->kind != Kind::Select || !is_const(k) || !is_const(s->args[1]) || !is_const(s->args[2])) continue;
        const auto side = [&](Expr v) { return left ? compare(p, op, v, k) : compare(p, op, k, v); };
        return p.select(s->args[0], side(s->args[1]), side(s->args[2]));
    }
    if (op == Op::Eq && a->id > b->id) std::swap(a, b);
    return build_compare(p, op, a, b);
}

} // namespace detail

Expr ExprPool::select(Expr c, Expr a, Expr b) {
    if (is_const(c)) return c->integer != 0 ? a : b;
    if (a == b) return a;
    if (c->kind == Kind::Not) return select(c->args[0], b, a);
    if (a->kind == Kind::Select && a->args[0] == c) a = a->args[1];
    if (b->kind == Kind::Select && b->args[0] == c) b = b->args[2];
    if (a == b) return a;
    if (a->type == Type::Bool) return logical_or(logical_and(c, a), logical_and(logical_not(c), b));
    if (a->type == Type::Int && c->kind == Kind::Cmp && c->op == Op::Le && c->args.size() == 1) {
        const Expr d = sub(a, b), e = c->args[0]; // a <= b ? a : b is the smaller one
        if (!is_const(d)) {
            if (e == d || e == isum(1, {{1, d}})) return extremum(Kind::Min, {a, b});
            const Expr m = isum(0, {{-1, d}});
            if (e == m || e == isum(1, {{1, m}})) return extremum(Kind::Max, {a, b});
        }
    }
    if (is_int(a, 1) && is_int(b, 0)) return cast(Type::Int, c);
    if (is_int(a, 0) && is_int(b, 1)) return cast(Type::Int, logical_not(c));
    ExprNode n{.kind = Kind::Select, .type = a->type};
    n.args = {c, a, b};
    return intern(std::move(n));
}

} // namespace cubridge::ir
