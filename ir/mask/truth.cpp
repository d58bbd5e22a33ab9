// Truth of conditions. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/extent.h"
#include <cmath>

namespace cubridge::ir::mask {

Truth Extent::truth(Expr e) {
    if (!on_tile(e)) return {e, e};
    if (const auto it = truths_.find(e); it != truths_.end()) return it->second;
    const Truth r = make_truth(e);
    truths_.emplace(e, r);
    return r;
}

// A Real that is made of integers only, as an Int; null: it is not.
Expr Extent::whole(Expr e) {
    constexpr double kExact = 2147483648.0;
    const auto fits = [](double v) { return std::floor(v) == v && std::fabs(v) < kExact; };
    if (e->kind == Kind::Const) return fits(e->real) ? p_.integer(static_cast<std::int64_t>(e->real)) : nullptr;
    if (e->kind == Kind::Cast) return e->type == Type::Real && e->args[0]->type == Type::Int ? e->args[0] : nullptr;
    if (e->kind != Kind::Sum || !fits(e->real)) return nullptr;
    std::vector<std::pair<std::int64_t, Expr>> terms;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const Expr x = fits(e->rcoef[k]) ? whole(e->args[k]) : nullptr;
        if (!x) return nullptr;
        terms.emplace_back(static_cast<std::int64_t>(e->rcoef[k]), x);
    }
    return p_.isum(static_cast<std::int64_t>(e->real), std::move(terms));
}

// mod == value, for mod = x % n: the interval of x holds a number that is `value` modulo n.
Truth Extent::congruent(Expr mod, Expr value) {
    const Expr x = mod->args[0], n = mod->args[1];
    const Ends e = ends(x);
    if (!e.low || !e.high || on_tile(n)) return {};
    if (is_const(n) && n->integer <= 0) return {};
    const bool in_range = is_const(n) && is_const(value);
    if (in_range && (value->integer < 0 || value->integer >= n->integer)) return {p_.boolean(false), p_.boolean(false)};
    const Expr upto = p_.apply(Op::FloorDiv, p_.sub(e.high, value), n);
    const Expr before = p_.apply(Op::FloorDiv, p_.isum(-1, {{1, e.low}, {-1, value}}), n);
    Expr any = p_.apply(Op::Lt, before, upto);
    if (!is_const(n)) any = p_.logical_or(any, p_.apply(Op::Le, n, p_.integer(0)));
    const Expr single = p_.apply(Op::Eq, e.low, e.high);
    return {any, p_.logical_and(single, p_.apply(Op::Eq, p_.apply(Op::Mod, e.low, n), value))};
}

Truth Extent::equal(Expr e) {
    const Expr on = [&]() -> Expr {
        if (e->kind != Kind::Sum) return e;
        Expr one = nullptr;
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            if (!on_tile(e->args[k])) continue;
            if (one || std::abs(e->icoef[k]) != 1) return nullptr;
            one = e->args[k];
        }
        return one;
    }();
    const bool of_one_axis = on && has(on, axis::i) != has(on, axis::j) && opaque(on);
    if (on && on->kind == Kind::Mod && !of_one_axis) {
        const Expr rest = p_.sub(e, on); // e is on + rest, or -on + rest
        const Expr value = on_tile(rest) ? p_.add(e, on) : p_.isum(0, {{-1, rest}});
        if (const Truth t = congruent(on, value); t.any) return t;
    }
    const Ends x = ends(e);
    const Expr zero = p_.integer(0), yes = p_.boolean(true), no = p_.boolean(false);
    const Expr from = x.low ? p_.apply(Op::Le, x.low, zero) : yes, to = x.high ? p_.apply(Op::Ge, x.high, zero) : yes;
    if (!x.low || !x.high) return {p_.logical_and(from, to), no};
    // Nodes are numbered as they are made, and a conjunction is sorted by them: one after the other, not as arguments,
    // or the kernel's text would depend on the compiler that built the library.
    const Expr any = p_.logical_and(from, to), ends_there = p_.apply(Op::Eq, x.high, zero);
    return {any, p_.logical_and(p_.apply(Op::Eq, x.low, zero), ends_there)};
}

Truth Extent::make_truth(Expr e) {
    const Truth unknown{p_.boolean(true), p_.boolean(false)};
    switch (e->kind) {
    case Kind::And:
    case Kind::Or: {
        std::vector<Expr> any, every;
        for (const Expr a : e->args) {
            const Truth t = truth(a);
            any.push_back(t.any);
            every.push_back(t.every);
        }
        if (e->kind == Kind::And) return {p_.logical_and(std::move(any)), p_.logical_and(std::move(every))};
        return {p_.logical_or(std::move(any)), p_.logical_or(std::move(every))};
    }
    case Kind::Not: {
        const Truth t = truth(e->args[0]);
        return {p_.logical_not(t.every), p_.logical_not(t.any)};
    }
    case Kind::Cmp: {
        if (e->args.size() == 2) {
            const Expr a = whole(e->args[0]), b = whole(e->args[1]);
            if (a && b) return truth(p_.apply(e->op, a, b));
            break;
        }
        if (e->op == Op::Eq) return equal(e->args[0]);
        const Ends x = ends(e->args[0]);
        const Expr zero = p_.integer(0);
        return {x.low ? p_.apply(Op::Le, x.low, zero) : unknown.any,
                x.high ? p_.apply(Op::Le, x.high, zero) : unknown.every};
    }
    default: break;
    }
    if (has(e, axis::i) && has(e, axis::j)) return unknown;
    const Ends t = entry(p_.cast(Type::Int, e)); // a condition of one axis: 0 or 1
    return {p_.apply(Op::Ge, t.high, p_.integer(1)), p_.apply(Op::Ge, t.low, p_.integer(1))};
}

} // namespace cubridge::ir::mask
