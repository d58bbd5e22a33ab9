// Expressions as rules need them: in units of log2, of functions that the hardware has.
// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/writer.h"
#include <algorithm>

namespace cubridge::ir::transfer {

Level join(Level a, Level b) {
    if ((a == Level::Row && b == Level::Column) || (a == Level::Column && b == Level::Row)) return Level::Tile;
    return std::max(a, b);
}

int canonical(const Variant& v, int input) {
    const auto it = std::find(v.order.begin(), v.order.end(), input);
    return it == v.order.end() ? -1 : static_cast<int>(it - v.order.begin());
}

bool contains(Expr e, const std::function<bool(Expr)>& what) {
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (!seen.insert(x).second) return false;
        return what(x) || std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}

Expr log2e(ExprPool& pool) {
    return pool.arg(kLog2e, Type::Real);
}

Expr scaled(ExprPool& pool, Expr e, Expr factor) {
    if (is_const(e)) return e->real == 0 ? e : pool.rsum(0, {{e->real, factor}});
    if (e->kind == Kind::Sum && e->type == Type::Real) {
        std::vector<std::pair<double, Expr>> terms;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            terms.emplace_back(e->rcoef[k], scaled(pool, e->args[k], factor));
        if (e->real != 0) terms.emplace_back(e->real, factor);
        return pool.rsum(0, std::move(terms));
    }
    if (e->kind == Kind::Select)
        return pool.select(e->args[0], scaled(pool, e->args[1], factor), scaled(pool, e->args[2], factor));
    if (e->kind == Kind::Fn && e->op == Op::Log && factor == log2e(pool)) return pool.apply(Op::Log2, e->args[0]);
    return pool.product(Type::Real, {{factor, 1, 1}, {e, 1, 1}});
}

Expr by_exp2(ExprPool& pool, Expr e) {
    const auto inverse = [&](Expr x) { return pool.product(Type::Real, {{x, -1, 1}}); };
    const auto power = [&](double c, Expr x) { // exp(c x)
        return pool.apply(Op::Exp2, pool.rsum(0, {{c, scaled(pool, x, log2e(pool))}}));
    };
    // tanh(x) = 1 - 2 / (exp(2 x) + 1)
    const auto bend = [&](Expr x) { return inverse(pool.rsum(1, {{1, power(2, x)}})); };
    e = pool.rewrite(e, [&](Expr x) -> Expr {
        if (x->kind == Kind::Fn && x->op == Op::Sigmoid) return inverse(pool.rsum(1, {{1, power(-1, x->args[0])}}));
        if (x->kind == Kind::Fn && x->op == Op::Exp) return power(1, x->args[0]);
        if (x->kind != Kind::Product || x->type != Type::Real) return x;
        for (std::size_t k = 0; k < x->args.size(); ++k) {
            const Expr f = x->args[k];
            if (f->kind != Kind::Fn || f->op != Op::Tanh || x->num[k] != 1 || x->den[k] != 1) continue;
            std::vector<ExprPool::Power> rest;
            for (std::size_t m = 0; m < x->args.size(); ++m)
                if (m != k) rest.push_back({x->args[m], x->num[m], x->den[m]});
            const Expr r = pool.product(Type::Real, rest);
            return pool.rsum(0, {{1, r}, {-2, pool.product(Type::Real, {{r, 1, 1}, {bend(f->args[0]), 1, 1}})}});
        }
        return x;
    });
    return pool.rewrite(e, [&](Expr x) -> Expr {
        if (x->kind == Kind::Fn && x->op == Op::Tanh) return pool.rsum(1, {{-2, bend(x->args[0])}});
        return x;
    });
}

} // namespace cubridge::ir::transfer
