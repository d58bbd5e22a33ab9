// Where a bias is said to be constant, against all of its pairs. SPDX-License-Identifier: Apache-2.0
#include "random_mask.h"
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::mask;
using namespace cubridge::ir::mask::test;

constexpr int kBias = 10; // Real [H, 32]

struct Found {
    int constant = 0, told = 0; ///< tiles that are constant; those of which a class says so
};

// 400 tiles of random sizes and data; values must be right wherever a condition holds.
template <class Make> Found check(Make make, std::size_t classes) {
    std::mt19937 random(6);
    Found found;
    for (int trial = 0; trial < 400; ++trial) {
        ExprPool p;
        World w(random);
        std::vector<double> v;
        for (int k = 0; k < 64; ++k) v.push_back(0.5 * (1 + k % 32) + k / 32);
        w.env.inputs[kBias] = {{2, 32}, shared(std::move(v))};
        const Expr bias = make(p);
        std::vector<Table> tables;
        const auto list = constant_bias(p, bias, tables);
        EXPECT_EQ(list.size(), classes) << debug_text(bias);
        const auto values = w.over(p, bias);
        const Tile t = random_tile(w, random);
        OnTile on(p, w, tables, t);
        bool told = false, constant = true;
        const double first = values[w.at(t.b, t.h, t.i0, t.j0)];
        for (auto i = t.i0; i < t.i1; ++i)
            for (auto j = t.j0; j < t.j1; ++j) constant = constant && values[w.at(t.b, t.h, i, j)] == first;
        for (const ConstantBias& c : list) {
            if (on.value(c.condition) == 0) continue;
            told = true;
            EXPECT_TRUE(constant && on.value(c.value) == first)
                << debug_text(bias) << " where " << debug_text(c.condition) << " is not " << debug_text(c.value);
        }
        found.constant += constant ? 1 : 0;
        found.told += told ? 1 : 0;
    }
    return found;
}

Expr lookup(ExprPool& p, Expr at) {
    return p.load(kBias, Type::Real, {p.index(axis::h), at});
}
Expr distance(ExprPool& p) {
    return p.sub(p.index(axis::j), p.index(axis::i));
}

TEST(ConstantBiasTest, ClampedDistance) {
    const Found f = check(
        [](ExprPool& p) {
            const Expr x = p.arg(3, Type::Int), minus = p.isum(0, {{-1, x}});
            const Expr clamped = p.extremum(Kind::Min, {p.extremum(Kind::Max, {distance(p), minus}), x});
            return lookup(p, p.add(clamped, x));
        },
        2);
    EXPECT_GT(f.told, 100);
}

TEST(ConstantBiasTest, DistanceWithoutSign) {
    const Found f = check(
        [](ExprPool& p) {
            return lookup(p, p.extremum(Kind::Min, {p.apply(Op::Abs, distance(p)), p.integer(2)}));
        },
        1);
    EXPECT_GT(f.told, 60);
}

TEST(ConstantBiasTest, Choices) {
    const Found f = check(
        [](ExprPool& p) {
            const Expr near = p.apply(Op::Le, distance(p), p.integer(-1));
            return p.select(near, lookup(p, p.integer(3)),
                            p.select(p.apply(Op::Eq, distance(p), p.integer(0)), p.real(99.0), p.real(-1.0)));
        },
        3);
    EXPECT_EQ(f.told, f.constant); // no two of the values are equal
}

TEST(ConstantBiasTest, Data) {
    const Found f = check([](ExprPool& p) { return lookup(p, p.load(4, Type::Int, {p.index(axis::j)})); }, 1);
    EXPECT_EQ(f.told, f.constant);
}

/// T5's bucket of a distance: half of x for exact distances, a logarithm up to 4 x, the last one beyond.
Expr bucket(ExprPool& p, Expr d, Expr x) {
    const auto f32 = [&](Expr n) { return p.cast(Type::F32, n); };
    const auto of = [&](Op op, Expr a, Expr b) { return p.apply(op, a, b); };
    const Expr exact = of(Op::FloorDiv, x, p.integer(2)), far = p.isum(0, {{4, x}});
    const Expr base =
        p.cast(Type::F32, p.apply(Op::Log, of(Op::Div, p.cast(Type::Real, far), p.cast(Type::Real, exact))));
    const Expr log = p.apply(Op::Log, of(Op::Div, f32(of(Op::Max, d, p.integer(1))), f32(exact)));
    const Expr steps = p.cast(Type::Int, of(Op::Mul, of(Op::Div, log, base), f32(p.sub(x, exact))));
    const Expr big = of(Op::Min, p.add(exact, steps), p.isum(-1, {{1, x}}));
    return p.select(of(Op::Lt, d, exact), d, big);
}

TEST(ConstantBiasTest, Buckets) {
    const Found f = check(
        [](ExprPool& p) {
            const Expr d = distance(p), x = p.integer(4);
            const Expr later = p.cast(Type::Int, p.apply(Op::Lt, p.integer(0), d));
            const Expr at = p.add(bucket(p, p.apply(Op::Abs, d), x), p.mul(later, x));
            return lookup(p, at);
        },
        2);
    EXPECT_GT(f.told, 20);
}

TEST(ConstantBiasTest, NothingWhereNoRuleApplies) {
    ExprPool p;
    std::vector<Table> tables;
    const Expr slope = p.apply(Op::Mul, lookup(p, p.integer(0)), p.cast(Type::Real, distance(p)));
    EXPECT_TRUE(constant_bias(p, slope, tables).empty());
    EXPECT_TRUE(tables.empty());
}

} // namespace
