// Random masks of every shape that analysis knows, and their truth by enumeration. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/evaluate.h"
#include "ir/mask/mask.h"
#include "ir/spec/variant.h"
#include <algorithm>
#include <random>

namespace cubridge::ir::mask::test {

inline std::shared_ptr<const std::vector<double>> shared(std::vector<double> v) {
    return std::make_shared<const std::vector<double>>(std::move(v));
}

/// Sizes and data of one trial. Inputs: 3 scalar, 4 ids[S], 5 ids[B, S], 6 bools[S], 7 lengths[B], 8 bools[Sq, Sk],
/// 9 offsets[4].
struct World {
    std::int64_t B = 2, H = 2, Sq = 1, Sk = 1;
    Environment env;

    explicit World(std::mt19937& random) {
        const auto upto = [&](std::int64_t n) { return std::uniform_int_distribution<std::int64_t>(0, n - 1)(random); };
        Sq = 1 + upto(9), Sk = 1 + upto(9);
        env.dims = {{dims::B, B},   {dims::Hq, H}, {dims::Hk, 1}, {dims::Sq, Sq},
                    {dims::Sk, Sk}, {dims::D, 4},  {dims::Dv, 4}};
        const std::int64_t S = std::max(Sq, Sk);
        const auto data = [&](int number, std::vector<std::int64_t> shape, std::int64_t from, std::int64_t count) {
            std::int64_t n = 1;
            for (const auto s : shape) n *= s;
            std::vector<double> v;
            for (std::int64_t k = 0; k < n; ++k) v.push_back(static_cast<double>(from + upto(count)));
            if (upto(2) == 0) std::sort(v.begin(), v.end());
            env.inputs[number] = {std::move(shape), shared(std::move(v))};
        };
        data(3, {}, -2, 8);
        data(4, {S}, 0, 4);
        data(5, {B, S}, -1, 3);
        data(6, {S}, 0, 2);
        data(7, {B}, 0, S + 1);
        data(8, {Sq, Sk}, 0, 2);
        data(9, {4}, 0, S);
    }
    /// Over b, h, i, j, row major.
    std::vector<double> over(const ExprPool& pool, Expr e) const {
        return Evaluator(pool, env).over(e, {B, H, Sq, Sk});
    }
    std::size_t at(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
        return static_cast<std::size_t>(((b * H + h) * Sq + i) * Sk + j);
    }
};

class Masks {
public:
    Masks(ExprPool& pool, std::mt19937& random) : p(pool), random_(random) {}

    Expr mask(int depth) {
        const int what = depth == 0 ? 0 : upto(6);
        if (what <= 1) return atom();
        if (what == 2) return p.logical_not(mask(depth - 1));
        std::vector<Expr> x{mask(depth - 1), mask(depth - 1)};
        if (upto(3) == 0) x.push_back(mask(depth - 1));
        return what <= 4 ? p.logical_and(x) : p.logical_or(x);
    }
    /// +-i +- j + constants, at most or equal 0: what is answered exactly.
    Expr affine() {
        Expr e = p.isum(upto(9) - 4, {{sign(), i}, {sign(), j}});
        if (upto(3) == 0) e = p.add(e, p.isum(0, {{sign(), p.arg(3, Type::Int)}}));
        if (upto(3) == 0) e = p.add(e, p.sub(p.dim(dims::Sk), p.dim(dims::Sq)));
        if (upto(4) == 0) e = p.sub(e, ids(7, b));
        return p.apply(upto(5) == 0 ? Op::Eq : Op::Le, e, zero);
    }
    /// Unions of intervals of keys, all of which have closed forms of their own.
    Expr intervals(int depth) {
        const Expr x = p.arg(3, Type::Int), N = p.integer(1 + upto(5));
        const Op compare = upto(2) ? Op::Le : Op::Ge;
        switch (depth == 0 ? upto(6) : 6 + upto(3)) {
        case 0:
        case 1: return affine();
        case 2: return p.apply(compare, j, upto(2) ? ids(7, b) : p.mul(p.integer(2), x));
        case 3: return p.apply(compare, i, upto(2) ? x : N);
        case 4: return p.apply(compare, p.apply(Op::FloorDiv, i, N), p.apply(Op::FloorDiv, j, N));
        case 5:
            if (upto(3) == 0) return p.apply(Op::Eq, p.apply(Op::Mod, p.sub(i, j), N), zero);
            return p.apply(Op::Ne, p.add(j, x), upto(2) ? i : N);
        case 6: return p.logical_and(intervals(depth - 1), intervals(depth - 1));
        default: return p.logical_or(intervals(depth - 1), intervals(depth - 1));
        }
    }
    Expr atom() {
        const std::int64_t n = 1 + upto(5);
        const Expr N = p.integer(n), x = p.arg(3, Type::Int), k = p.integer(upto(9) - 4), v = upto(2) ? i : j;
        const Op compare = upto(3) == 0 ? Op::Eq : upto(2) == 0 ? Op::Le : Op::Ge;
        const auto div = [&](Expr a, Expr c) { return p.apply(Op::FloorDiv, a, c); };
        const auto mod = [&](Expr a, Expr c) { return p.apply(Op::Mod, a, c); };
        switch (upto(28)) {
        case 0:
        case 1:
        case 2: return affine();
        case 3: return p.apply(compare, p.isum(upto(9) - 4, {{upto(7) - 3, i}, {upto(7) - 3, j}}), zero);
        case 4: return p.apply(Op::Lt, j, ids(7, b));
        case 5: return p.apply(compare, v, p.mul(p.integer(2), x));
        case 6: return p.apply(Op::Eq, mod(p.sub(i, j), N), p.integer(upto(4) - 1));
        case 7: return p.apply(Op::Eq, mod(v, upto(3) ? N : x), p.integer(upto(3)));
        case 8: return p.apply(compare, div(p.add(i, k), N), div(j, N));
        case 9: return p.apply(compare, div(i, x), div(j, x));
        case 10: return p.apply(compare, ids(4, i), ids(4, j));
        case 11: return p.apply(compare, load(5, {b, i}), load(5, {b, j}));
        case 12: return p.apply(compare, ids(4, ids(4, j)), ids(4, i));
        case 13: return p.apply(compare, count(i), count(j));
        case 14: return p.load(6, Type::Bool, {v});
        case 15: return p.load(8, Type::Bool, {i, j});
        case 16: return p.apply(Op::Le, p.apply(Op::Abs, p.sub(i, j)), upto(2) ? N : x);
        case 17: return p.apply(compare, p.extremum(upto(2) ? Kind::Min : Kind::Max, {i, k, x}), p.sub(j, N));
        case 18: return p.apply(Op::Lt, real(2.0, i), p.apply(Op::Add, real(1.0, j), p.real(double(n))));
        case 19: return p.apply(Op::Le, real(0.5, i), real(1.0, j));
        case 20: return p.apply(compare, p.mul(v, upto(2) ? x : p.sub(i, j)), p.add(j, k));
        case 21: return p.apply(compare, ids(4, v), upto(2) ? k : p.sub(v, k));
        case 22: return p.apply(compare, p.select(p.apply(Op::Le, i, x), p.add(j, k), p.mul(N, i)), upto(2) ? N : h);
        case 23: { // products and squares of what may be negative
            const Expr q = div(p.sub(i, j), N), c = p.isum(upto(7) - 4, {{sign(), p.mul(q, upto(2) ? q : v)}});
            return p.apply(compare, c, upto(2) ? zero : x);
        }
        case 24: { // of which nothing is known
            const Expr dense = load(8, {i, j});
            const Expr e = upto(2) ? dense : p.extremum(upto(2) ? Kind::Min : Kind::Max, {dense, p.sub(i, k)});
            return p.apply(compare, e, upto(2) ? p.integer(upto(2)) : p.sub(N, j));
        }
        case 25: {
            const auto number = [&](Expr e) { return p.cast(Type::Int, e); };
            return p.apply(compare, p.add(number(affine()), number(affine())), p.integer(upto(4) - 1));
        }
        default: return p.apply(compare, p.sub(mod(p.add(i, k), N), upto(2) ? mod(j, x) : div(p.sub(i, j), N)), zero);
        }
    }

    ExprPool& p;
    const Expr b = p.index(axis::b), h = p.index(axis::h), i = p.index(axis::i), j = p.index(axis::j);
    const Expr zero = p.integer(0);

private:
    int upto(int n) { return std::uniform_int_distribution<int>(0, n - 1)(random_); }
    std::int64_t sign() { return upto(2) ? 1 : -1; }
    Expr load(int number, std::vector<Expr> at) { return p.load(number, Type::Int, std::move(at)); }
    Expr ids(int number, Expr at) { return load(number, {at}); }
    Expr real(double c, Expr e) { return p.apply(Op::Mul, p.real(c), p.cast(Type::Real, e)); }
    Expr count(Expr v) { // how many offsets are <= v
        const Expr r = p.index(15);
        const Expr below = p.apply(Op::Le, ids(9, r), v);
        return p.reduce(ReduceOp::Sum, p.cast(Type::Int, below), 15, p.integer(4));
    }
    std::mt19937& random_;
};

/// One tile of one request's head.
struct Tile {
    std::int64_t b, h, i0, i1, j0, j1;
};

/// Values of what analysis made, on a tile: table entries are computed from what they tabulate.
class OnTile {
public:
    OnTile(ExprPool& pool, const World& world, const std::vector<Table>& tables, const Tile& t)
        : p_(pool), world_(world), env_(world.env), t_(t) {
        for (std::size_t k = 0; k < tables.size(); ++k) {
            const auto values = world.over(pool, tables[k].value);
            double low = 1e18, high = -1e18;
            for (auto i = t.i0; i < t.i1; ++i)
                for (auto j = t.j0; j < t.j1; ++j) {
                    low = std::min(low, values[world.at(t.b, t.h, i, j)]);
                    high = std::max(high, values[world.at(t.b, t.h, i, j)]);
                }
            const std::uint64_t free = tables[k].value->free;
            std::vector<std::int64_t> shape{1}; // Loads clamp: one element is every element
            for (const int a : {axis::b, axis::h})
                if ((free & index_bit(a)) != 0) shape.push_back(1);
            env_.inputs[kTable + 2 * static_cast<int>(k)] = {shape, shared({low})};
            env_.inputs[kTable + 2 * static_cast<int>(k) + 1] = {shape, shared({high})};
        }
        map_.resize(tile::j1 + 1, nullptr);
        const std::pair<int, std::int64_t> known[] = {{axis::b, t.b},   {axis::h, t.h},   {tile::i0, t.i0},
                                                      {tile::i1, t.i1}, {tile::j0, t.j0}, {tile::j1, t.j1}};
        for (const auto& [k, v] : known) map_[static_cast<std::size_t>(k)] = pool.integer(v);
    }
    double value(Expr e) { return Evaluator(p_, env_).value(p_.substitute(e, map_)); }
    /// For classify: bounds of a leaf over the tile, where it has no variable of a Reduce in it.
    std::optional<Bounds> bounds(Expr leaf) const {
        if ((leaf->free & kAllBound) != 0) return {};
        const auto v = world_.over(p_, leaf);
        double low = 1e18, high = -1e18;
        for (auto i = t_.i0; i < t_.i1; ++i)
            for (auto j = t_.j0; j < t_.j1; ++j) {
                low = std::min(low, v[world_.at(t_.b, t_.h, i, j)]);
                high = std::max(high, v[world_.at(t_.b, t_.h, i, j)]);
            }
        return Bounds{static_cast<std::int64_t>(low), static_cast<std::int64_t>(high)};
    }

private:
    ExprPool& p_;
    const World& world_;
    Environment env_;
    Tile t_;
    std::vector<Expr> map_;
};

inline Tile random_tile(const World& w, std::mt19937& random) {
    const auto between = [&](std::int64_t a, std::int64_t b) {
        return std::uniform_int_distribution<std::int64_t>(a, b)(random);
    };
    Tile t{};
    t.b = between(0, w.B - 1), t.h = between(0, w.H - 1);
    t.i0 = between(0, w.Sq - 1), t.i1 = between(t.i0 + 1, w.Sq);
    t.j0 = between(0, w.Sk - 1), t.j1 = between(t.j0 + 1, w.Sk);
    return t;
}

} // namespace cubridge::ir::mask::test
