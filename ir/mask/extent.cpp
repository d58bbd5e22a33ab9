// Ends of integers. Each of i and j should stand once in a sum, which the normal form sees to; whatever stands twice
// makes the ends wider, never wrong. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/extent.h"
#include "ir/mask/sign.h"
#include <numeric>

namespace cubridge::ir::mask {

bool has(Expr e, int axis) {
    return (e->free & index_bit(axis)) != 0;
}

bool on_tile(Expr e) {
    return has(e, axis::i) || has(e, axis::j);
}

bool Extent::opaque(Expr e) {
    if (!on_tile(e)) return false;
    if (const auto it = opaque_.find(e); it != opaque_.end()) return it->second;
    const bool made_of_reals = e->type == Type::Real || e->type == Type::F32;
    bool r = made_of_reals || e->kind == Kind::Load || e->kind == Kind::Table || e->kind == Kind::Reduce;
    for (const Expr x : e->args) r = r || opaque(x);
    opaque_.emplace(e, r);
    return r;
}

Ends Extent::entry(Expr value) {
    const int axis = has(value, axis::i) ? axis::i : axis::j;
    std::size_t t = 0;
    while (t < tables_.size() && tables_[t].value != value) ++t;
    if (t == tables_.size()) tables_.push_back({value, axis});
    std::vector<Expr> at;
    for (const int k : {axis::b, axis::h})
        if (has(value, k)) at.push_back(p_.index(k));
    at.push_back(p_.index(axis == axis::i ? tile::i0 : tile::j0));
    const int number = kTable + 2 * static_cast<int>(t);
    return {p_.load(number, Type::Int, at), p_.load(number + 1, Type::Int, at)};
}

Expr Extent::one_of(Kind kind, Expr a, Expr b) {
    if (!a || !b) return nullptr;
    return p_.extremum(kind, {a, b});
}

Ends Extent::hull(const Ends& a, const Ends& b) {
    return {one_of(Kind::Min, a.low, b.low), one_of(Kind::Max, a.high, b.high)};
}

// coefficient * index over the tile; the sign of the coefficient may be unknown.
Ends Extent::linear(Expr coefficient, int axis) {
    const bool rows = axis == axis::i;
    const Expr first = p_.mul(coefficient, p_.index(rows ? tile::i0 : tile::j0));
    const Expr last = p_.mul(coefficient, p_.isum(-1, {{1, p_.index(rows ? tile::i1 : tile::j1)}}));
    if (never_negative(p_, coefficient)) return {first, last};
    if (never_negative(p_, p_.isum(0, {{-1, coefficient}}))) return {last, first};
    return hull({first, first}, {last, last});
}

Ends Extent::sum(Expr e) {
    using Terms = std::vector<std::pair<std::int64_t, Expr>>;
    Terms low, high, data[2], coefficient[2];
    bool low_known = true, high_known = true;
    const auto add = [&](std::int64_t c, const Ends& x) {
        const Expr a = c > 0 ? x.low : x.high, b = c > 0 ? x.high : x.low;
        low_known = low_known && a;
        high_known = high_known && b;
        if (a) low.emplace_back(c, a);
        if (b) high.emplace_back(c, b);
    };
    for (const int side : {0, 1}) { // with data of one axis in it, all of that axis is one table: exact
        const int mine = side == 0 ? axis::i : axis::j, other = side == 0 ? axis::j : axis::i;
        bool tabulate = false;
        for (const Expr x : e->args) tabulate = tabulate || (has(x, mine) && !has(x, other) && opaque(x));
        for (std::size_t k = 0; k < e->args.size() && tabulate; ++k)
            if (has(e->args[k], mine) && !has(e->args[k], other)) data[side].emplace_back(e->icoef[k], e->args[k]);
        if (!tabulate) continue;
        std::int64_t g = 0;
        for (const auto& [c, x] : data[side]) g = std::gcd(g, c);
        if (data[side][0].first < 0) g = -g;
        for (auto& [c, x] : data[side]) c /= g;
        add(g, entry(p_.isum(0, data[side])));
    }
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const Expr x = e->args[k];
        const std::int64_t c = e->icoef[k];
        const bool i = has(x, axis::i), j = has(x, axis::j);
        if (i != j && !data[i ? 0 : 1].empty()) continue;
        if (x->kind == Kind::Index && i != j) {
            coefficient[i ? 0 : 1].emplace_back(c, p_.integer(1));
            continue;
        }
        if (x->kind == Kind::Product && i != j) { // index * what does not depend on it
            const Expr index = p_.index(i ? axis::i : axis::j);
            std::vector<ExprPool::Power> rest;
            bool linear = false;
            for (std::size_t m = 0; m < x->args.size(); ++m) {
                if (x->args[m] == index && x->num[m] == 1)
                    linear = true;
                else
                    rest.push_back({x->args[m], x->num[m], 1});
            }
            for (const auto& f : rest) linear = linear && !on_tile(f.base);
            if (linear) {
                coefficient[i ? 0 : 1].emplace_back(c, p_.product(Type::Int, std::move(rest)));
                continue;
            }
        }
        add(c, ends(x));
    }
    for (const int side : {0, 1})
        if (!coefficient[side].empty())
            add(1, linear(p_.isum(0, std::move(coefficient[side])), side == 0 ? axis::i : axis::j));
    return {low_known ? p_.isum(e->integer, std::move(low)) : nullptr,
            high_known ? p_.isum(e->integer, std::move(high)) : nullptr};
}

Ends Extent::times(const Ends& a, const Ends& b) {
    if (!a.low || !a.high || !b.low || !b.high) return {};
    if (never_negative(p_, a.low) && never_negative(p_, b.low)) return {p_.mul(a.low, b.low), p_.mul(a.high, b.high)};
    const std::vector<Expr> corners{p_.mul(a.low, b.low), p_.mul(a.low, b.high), p_.mul(a.high, b.low),
                                    p_.mul(a.high, b.high)};
    return {p_.extremum(Kind::Min, corners), p_.extremum(Kind::Max, corners)};
}

Ends Extent::power(Expr base, std::int64_t n) {
    const Ends x = ends(base);
    if (!x.low || !x.high) return {};
    const Expr low = p_.product(Type::Int, {{x.low, n, 1}}), high = p_.product(Type::Int, {{x.high, n, 1}});
    if (n % 2 != 0 || never_negative(p_, x.low)) return {low, high};
    if (never_negative(p_, p_.isum(0, {{-1, x.high}}))) return {high, low};
    return {p_.integer(0), one_of(Kind::Max, low, high)};
}

Ends Extent::product(Expr e) {
    Ends r{p_.integer(1), p_.integer(1)};
    for (std::size_t k = 0; k < e->args.size(); ++k) r = times(r, power(e->args[k], e->num[k]));
    return r;
}

Ends Extent::ends(Expr e) {
    if (!on_tile(e)) return {e, e};
    if (const auto it = ends_.find(e); it != ends_.end()) return it->second;
    const Ends r = make_ends(e);
    ends_.emplace(e, r);
    return r;
}

Ends Extent::make_ends(Expr e) {
    if (has(e, axis::i) != has(e, axis::j) && opaque(e) && e->kind != Kind::Sum) return entry(e);
    switch (e->kind) {
    case Kind::Index: return linear(p_.integer(1), e->number);
    case Kind::Sum: return sum(e);
    case Kind::Product: return product(e);
    case Kind::FloorDiv: { // monotone in what is divided, whatever the sign of the divisor
        const Expr n = e->args[1];
        const Ends x = ends(e->args[0]);
        if (on_tile(n) || !x.low || !x.high) return {};
        const auto by = [&](Expr a) { return p_.apply(Op::FloorDiv, a, n); };
        if (never_negative(p_, n)) return {by(x.low), by(x.high)};
        return hull({by(x.low), by(x.low)}, {by(x.high), by(x.high)});
    }
    case Kind::Mod: { // the remainders themselves within one period, else all of them
        const Expr n = e->args[1], zero = p_.integer(0);
        if (on_tile(n)) return {};
        const bool positive = never_negative(p_, n);
        const Expr least = positive ? zero : p_.extremum(Kind::Min, {zero, p_.isum(1, {{1, n}})});
        const Expr greatest = p_.extremum(Kind::Max, {zero, p_.isum(-1, {{1, n}})});
        const Ends x = ends(e->args[0]);
        if (!x.low || !x.high) return {least, greatest};
        const Expr last = p_.apply(Op::FloorDiv, x.high, n);
        const Expr same = p_.apply(Op::Eq, p_.apply(Op::FloorDiv, x.low, n), last);
        return {p_.select(same, p_.apply(Op::Mod, x.low, n), least),
                p_.select(same, p_.apply(Op::Mod, x.high, n), greatest)};
    }
    case Kind::Min:
    case Kind::Max: { // one known argument bounds a Min from above, a Max from below
        std::vector<Expr> low, high;
        for (const Expr a : e->args) {
            const Ends x = ends(a);
            if (x.low) low.push_back(x.low);
            if (x.high) high.push_back(x.high);
        }
        const bool needs_all_low = e->kind == Kind::Min, needs_all_high = e->kind == Kind::Max;
        const auto of = [&](std::vector<Expr>& x, bool needs_all) -> Expr {
            if (x.empty() || (needs_all && x.size() < e->args.size())) return nullptr;
            return p_.extremum(e->kind, std::move(x));
        };
        return {of(low, needs_all_low), of(high, needs_all_high)};
    }
    case Kind::Select: {
        const Truth c = truth(e->args[0]);
        const Ends a = ends(e->args[1]), b = ends(e->args[2]), both = hull(a, b);
        const auto of = [&](Expr x, Expr y, Expr either) {
            return x && y ? p_.select(c.every, x, p_.select(c.any, either, y)) : nullptr;
        };
        return {of(a.low, b.low, both.low), of(a.high, b.high, both.high)};
    }
    case Kind::Cast: {
        if (e->args[0]->type != Type::Bool) return {};
        const Truth t = truth(e->args[0]);
        return {p_.cast(Type::Int, t.every), p_.cast(Type::Int, t.any)};
    }
    case Kind::Table: {
        const ConstTable& t = p_.table(e->number);
        if (t.type != Type::Int || t.values.empty()) return {};
        double low = t.values[0], high = low;
        for (const double v : t.values) low = v < low ? v : low, high = v > high ? v : high;
        return {p_.integer(static_cast<std::int64_t>(low)), p_.integer(static_cast<std::int64_t>(high))};
    }
    default: return {};
    }
}

} // namespace cubridge::ir::mask
