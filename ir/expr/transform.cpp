// Binding, opening, substituting and rebuilding expressions. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/expr/build.h"
#include <algorithm>
#include <bit>
#include <limits>

namespace cubridge::ir {

Expr ExprPool::with_args(Expr e, std::vector<Expr> args) {
    if (args == e->args) return e;
    switch (e->kind) {
    case Kind::Const:
    case Kind::Index:
    case Kind::Bound:
    case Kind::Dim:
    case Kind::Arg: return e;
    case Kind::Load: return load(e->number, e->type, std::move(args));
    case Kind::Table: return table(e->number, std::move(args));
    case Kind::Sum:
        if (e->type == Type::Int) {
            std::vector<std::pair<std::int64_t, Expr>> terms;
            for (std::size_t k = 0; k < args.size(); ++k) terms.emplace_back(e->icoef[k], args[k]);
            return isum(e->integer, std::move(terms));
        } else {
            std::vector<std::pair<double, Expr>> terms;
            for (std::size_t k = 0; k < args.size(); ++k) terms.emplace_back(e->rcoef[k], args[k]);
            return rsum(e->real, std::move(terms));
        }
    case Kind::Product: {
        std::vector<Power> factors;
        for (std::size_t k = 0; k < args.size(); ++k) factors.push_back({args[k], e->num[k], e->den[k]});
        return product(e->type, std::move(factors));
    }
    case Kind::FloorDiv: return apply(Op::FloorDiv, args[0], args[1]);
    case Kind::Mod: return apply(Op::Mod, args[0], args[1]);
    case Kind::Min:
    case Kind::Max: return extremum(e->kind, std::move(args));
    case Kind::Fn:
    case Kind::F32Fn: return apply(e->op, args);
    case Kind::Cmp:
        if (args.size() == 1) return detail::int_compare(*this, e->op, args[0]);
        return detail::compare(*this, e->op, args[0], args[1]);
    case Kind::And: return logical_and(std::move(args));
    case Kind::Or: return logical_or(std::move(args));
    case Kind::Not: return apply(Op::Not, args[0]);
    case Kind::Select: return select(args[0], args[1], args[2]);
    case Kind::Cast: return cast(e->type, args[0]);
    case Kind::Reduce: break;
    }
    ExprNode n{.kind = Kind::Reduce, .type = args[0]->type, .reduce = e->reduce, .number = e->number};
    n.args = std::move(args);
    return intern(std::move(n));
}

Expr ExprPool::rewrite(Expr root, const std::function<Expr(Expr)>& f) {
    std::unordered_map<Expr, Expr> done;
    const auto visit = [&](auto&& self, Expr e) -> Expr {
        meter_.spend(1);
        if (const auto it = done.find(e); it != done.end()) return it->second;
        Expr r = e;
        if (!e->args.empty()) {
            std::vector<Expr> args;
            args.reserve(e->args.size());
            for (const Expr a : e->args) args.push_back(self(self, a));
            r = with_args(e, std::move(args));
        }
        r = f(r);
        done.emplace(e, r);
        return r;
    };
    return visit(visit, root);
}

namespace {

// Replaces variables, skipping everything that does not depend on one of `bits`.
template <class Leaf> Expr replace(ExprPool& p, Expr root, std::uint64_t bits, const Leaf& leaf) {
    std::unordered_map<Expr, Expr> done;
    const auto visit = [&](auto&& self, Expr e) -> Expr {
        p.meter().spend(1);
        if ((e->free & bits) == 0) return e;
        if (e->kind == Kind::Index || e->kind == Kind::Bound) return leaf(e);
        if (const auto it = done.find(e); it != done.end()) return it->second;
        std::vector<Expr> args;
        args.reserve(e->args.size());
        for (const Expr a : e->args) args.push_back(self(self, a));
        const Expr r = p.with_args(e, std::move(args));
        done.emplace(e, r);
        return r;
    };
    return visit(visit, root);
}

} // namespace

Expr ExprPool::substitute(Expr e, std::span<const Expr> map) {
    std::uint64_t bits = 0;
    for (std::size_t k = 0; k < map.size(); ++k)
        if (map[k] && map[k] != index(static_cast<int>(k))) bits |= index_bit(static_cast<int>(k));
    if ((e->free & bits) == 0) return e;
    return replace(*this, e, bits, [&](Expr v) { return map[static_cast<std::size_t>(v->number)]; });
}

Expr ExprPool::open(Expr r, Expr value) {
    return replace(*this, r->args[0], bound_bit(r->number), [&](Expr) { return value; });
}

Expr ExprPool::reduce(ReduceOp op, Expr body, int axis, Expr extent) {
    const bool depends = (body->free & index_bit(axis)) != 0;
    if (is_int(extent, 1)) {
        std::vector<Expr> map(static_cast<std::size_t>(axis) + 1, nullptr);
        map.back() = integer(0);
        return substitute(body, map);
    }
    if (!depends) { // the same value every time
        const bool some = is_const(extent) && extent->integer > 0;
        if (op == ReduceOp::Sum && body->type == Type::Int) return mul(body, extent);
        if (op == ReduceOp::Sum && is_const(body) && body->type == Type::Real && body->real - body->real == 0)
            return mul(body, cast(Type::Real, extent));
        if (op == ReduceOp::Any) return logical_and(body, apply(Op::Gt, extent, integer(0)));
        if (op == ReduceOp::All) return logical_or(body, apply(Op::Le, extent, integer(0)));
        if (some && (op == ReduceOp::Max || op == ReduceOp::Min)) return body;
    }
    int number = body->height + 1;
    const std::uint64_t outer = body->free >> kMaxIndex;
    if (outer != 0)
        number = std::max(number, static_cast<int>(std::bit_width(outer))); // inside a pass: keep clear of it
    std::vector<Expr> map(static_cast<std::size_t>(axis) + 1, nullptr);
    map.back() = bound(number);
    ExprNode n{.kind = Kind::Reduce, .type = body->type, .reduce = op, .number = number};
    n.args = {substitute(body, map), extent};
    return intern(std::move(n));
}

} // namespace cubridge::ir
