// The interval reader of expressions. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/interval.h"
#include "ir/mask/mask.h"
#include <algorithm>
#include <cmath>
#include <unordered_map>

namespace cubridge::ir::mask {

namespace {

Class negated(Class c) {
    return c == Class::Some ? c : c == Class::All ? Class::None : Class::All;
}

Class at_most_zero(const Interval& x) {
    return x.high <= 0 ? Class::All : x.low > 0 ? Class::None : Class::Some;
}

Class zero(const Interval& x) {
    if (x == Interval{0, 0}) return Class::All;
    return x.low > 0 || x.high < 0 ? Class::None : Class::Some;
}

Interval as_interval(Class c) {
    return {c == Class::All ? 1 : 0, c == Class::None ? 0 : 1};
}

Class as_class(const Interval& truth) {
    return truth.low >= 1 ? Class::All : truth.high <= 0 ? Class::None : Class::Some;
}

class Reader {
public:
    Reader(std::int64_t b, std::int64_t h, Bounds i, Bounds j, const BoundsOf& leaf) : leaf_(leaf) {
        axes_[axis::b] = one(b);
        axes_[axis::h] = one(h);
        axes_[axis::i] = {i.low, i.high};
        axes_[axis::j] = {j.low, j.high};
    }

    Interval read(Expr e); ///< of an Int or a Bool

private:
    Class truth(Expr e) { return as_class(read(e)); }
    Interval make(Expr e);
    Interval logic(Expr e);
    Interval reduce(Expr e);
    Class compare(Expr e);
    std::optional<Class> congruent(Expr e);
    std::optional<Interval> whole(Expr real);
    std::optional<Interval> given(Expr e) {
        const auto b = leaf_(e);
        return b ? std::optional(Interval{b->low, b->high}) : std::nullopt;
    }

    const BoundsOf& leaf_;
    Interval axes_[kMaxIndex];
    std::unordered_map<int, Interval> bound_;
    std::unordered_map<Expr, Interval> done_;
};

Interval Reader::read(Expr e) {
    const bool closed = (e->free & kAllBound) == 0; // the same node inside another Reduce is another value
    if (closed)
        if (const auto it = done_.find(e); it != done_.end()) return it->second;
    Interval r = make(e);
    if (e->type == Type::Bool) r = as_interval(as_class(r));
    if (closed) done_.emplace(e, r);
    return r;
}

// x % n == v, where all but x is known: some multiple of n lies in x - v, or none.
std::optional<Class> Reader::congruent(Expr e) {
    Expr mod = nullptr;
    Interval rest = one(0);
    std::int64_t sign = 1;
    const auto take = [&](std::int64_t c, Expr x) {
        if (x->kind == Kind::Mod && !mod && std::abs(c) == 1) {
            mod = x;
            sign = c;
        } else {
            rest = add(rest, multiply(one(c), read(x)));
        }
    };
    if (e->kind == Kind::Sum) {
        rest = one(e->integer);
        for (std::size_t k = 0; k < e->args.size(); ++k) take(e->icoef[k], e->args[k]);
    } else {
        take(1, e);
    }
    if (!mod || !rest.single()) return {};
    const Interval value = multiply(rest, one(-sign)), n = read(mod->args[1]), x = read(mod->args[0]);
    if (!n.single() || n.low <= 0) return {};
    if (value.low < 0 || value.low >= n.low) return Class::None;
    if (x.single()) return floor_mod(x.low, n.low) == value.low ? Class::All : Class::None;
    const Interval from = add(x, multiply(value, one(-1)));
    if (from.low == Interval::kBelow || from.high == Interval::kAbove) return {};
    const bool any = floor_div(from.high, n.low) > floor_div(from.low - 1, n.low);
    return any ? Class::Some : Class::None;
}

// A Real that is an integer, exactly.
std::optional<Interval> Reader::whole(Expr e) {
    constexpr double kExact = 2147483648.0;
    const auto fits = [](double v) { return std::floor(v) == v && std::fabs(v) < kExact; };
    if (e->kind == Kind::Const)
        return fits(e->real) ? std::optional(one(static_cast<std::int64_t>(e->real))) : std::nullopt;
    if (e->kind == Kind::Cast && e->type == Type::Real && e->args[0]->type == Type::Int) return read(e->args[0]);
    if (e->kind != Kind::Sum || e->type != Type::Real || !fits(e->real)) return {};
    Interval sum = one(static_cast<std::int64_t>(e->real));
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const auto x = fits(e->rcoef[k]) ? whole(e->args[k]) : std::nullopt;
        if (!x) return {};
        sum = add(sum, multiply(one(static_cast<std::int64_t>(e->rcoef[k])), *x));
    }
    return sum;
}

Class Reader::compare(Expr e) {
    if (e->args.size() == 1) {
        if (e->op == Op::Le) return at_most_zero(read(e->args[0]));
        if (const auto c = congruent(e->args[0])) return *c;
        return zero(read(e->args[0]));
    }
    const auto a = whole(e->args[0]), b = whole(e->args[1]);
    if (!a || !b) return Class::Some;
    const Interval d = add(*a, multiply(*b, one(-1)));
    return e->op == Op::Eq ? zero(d) : at_most_zero(e->op == Op::Lt ? add(d, one(1)) : d);
}

Interval Reader::reduce(Expr e) {
    if (const auto known = given(e)) return *known;
    const Interval unknown = e->type == Type::Bool ? Interval{0, 1} : Interval{};
    if (e->type != Type::Bool && e->type != Type::Int) return unknown;
    const Interval n = greatest(read(e->args[1]), one(0));
    if (e->reduce == ReduceOp::Max || e->reduce == ReduceOp::Min || e->reduce == ReduceOp::Prod) return unknown;
    if (n.high == 0) return e->reduce == ReduceOp::All ? one(1) : one(0);
    const auto saved = bound_;
    bound_[e->number] = {0, n.high == Interval::kAbove ? n.high : n.high - 1};
    const Interval body = read(e->args[0]);
    bound_ = saved;
    if (e->reduce == ReduceOp::Sum) return multiply(n, body); // each of n terms lies in the body's interval
    const Class c = as_class(body);
    if (c == Class::None) return e->reduce == ReduceOp::All && n.low == 0 ? unknown : one(0);
    if (c == Class::All) return e->reduce == ReduceOp::Any && n.low == 0 ? unknown : one(1);
    return unknown;
}

Interval Reader::logic(Expr e) {
    const bool all = e->kind == Kind::And;
    Interval r = one(all ? 1 : 0);
    for (const Expr a : e->args) {
        const Interval x = read(a);
        r = all ? least(r, x) : greatest(r, x);
    }
    return r;
}

Interval Reader::make(Expr e) {
    const auto fold = [&](Interval (*f)(const Interval&, const Interval&)) {
        Interval r = read(e->args[0]);
        for (std::size_t k = 1; k < e->args.size(); ++k) r = f(r, read(e->args[k]));
        return r;
    };
    const Interval unknown = e->type == Type::Bool ? Interval{0, 1} : Interval{};
    if (e->type == Type::Real || e->type == Type::F32) return unknown;
    switch (e->kind) {
    case Kind::Const: return one(e->integer);
    case Kind::Index: return axes_[e->number];
    case Kind::Bound: {
        const auto it = bound_.find(e->number);
        return it == bound_.end() ? Interval{0, Interval::kAbove} : it->second;
    }
    case Kind::Dim: return given(e).value_or(Interval{0, Interval::kAbove});
    case Kind::Arg:
    case Kind::Load:
    case Kind::Table: return given(e).value_or(unknown);
    case Kind::Sum: {
        Interval r = one(e->integer);
        for (std::size_t k = 0; k < e->args.size(); ++k) r = add(r, multiply(one(e->icoef[k]), read(e->args[k])));
        return r;
    }
    case Kind::Product: {
        Interval r = one(1);
        for (std::size_t k = 0; k < e->args.size(); ++k) r = multiply(r, power(read(e->args[k]), e->num[k]));
        return r;
    }
    case Kind::FloorDiv: return fold(floor_divide);
    case Kind::Mod: return fold(modulo);
    case Kind::Min: return fold(least);
    case Kind::Max: return fold(greatest);
    case Kind::Cmp: return as_interval(compare(e));
    case Kind::And:
    case Kind::Or: return logic(e);
    case Kind::Not: return as_interval(negated(truth(e->args[0])));
    case Kind::Select: {
        const Class c = truth(e->args[0]);
        if (c != Class::Some) return read(e->args[c == Class::All ? 1 : 2]);
        return hull(read(e->args[1]), read(e->args[2]));
    }
    case Kind::Cast: return e->args[0]->type == Type::Bool ? read(e->args[0]) : unknown;
    case Kind::Reduce: return reduce(e);
    default: return unknown;
    }
}

} // namespace

Class classify(Expr keep, std::int64_t b, std::int64_t h, Bounds i, Bounds j, const BoundsOf& leaf) {
    return as_class(Reader(b, h, i, j, leaf).read(keep));
}

} // namespace cubridge::ir::mask
