// From where on a function of u is one value: against its values. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/mask/tail.h"
#include <cmath>
#include <gtest/gtest.h>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::mask;

constexpr int kU = 0;
constexpr std::int64_t kFar = 4000;

/// How far behind the first u of the last value the tail begins; -1: it has none, or begins too early.
std::int64_t late(ExprPool& p, Expr e) {
    const auto t = tail(p, e, kU);
    if (!t) return -1;
    const Environment env;
    const auto values = Evaluator(p, env).over(e, {kFar});
    const double last = Evaluator(p, env).value(t->value), from = t->from ? Evaluator(p, env).value(t->from) : 0;
    std::int64_t first = kFar;
    while (first > 0 && values[static_cast<std::size_t>(first) - 1] == last) --first;
    return static_cast<std::int64_t>(from) - first < 0 ? -1 : static_cast<std::int64_t>(from) - first;
}

Expr f32(ExprPool& p, Expr n) {
    return p.cast(Type::F32, n);
}

TEST(TailTest, Logarithms) { // T5's buckets: exact ones, then steps of a logarithm
    int exact_by_one = 0, all = 0;
    for (const int exact : {1, 2, 3, 4, 8, 16, 31})
        for (const int more : {1, 2, 5, 8, 16})
            for (const int most : {2, 3, 10, 100}) {
                ExprPool p;
                const Expr u = p.index(kU);
                const Expr base = p.f32(std::log(static_cast<float>(most)));
                const Expr x = p.apply(Op::Div, f32(p, p.apply(Op::Max, u, p.integer(1))), f32(p, p.integer(exact)));
                const Expr steps =
                    p.apply(Op::Mul, p.apply(Op::Div, p.apply(Op::Log, x), base), f32(p, p.integer(more)));
                const Expr bucket =
                    p.apply(Op::Min, p.add(p.integer(exact), p.cast(Type::Int, steps)), p.integer(exact + more - 1));
                const auto n = late(p, p.select(p.apply(Op::Lt, u, p.integer(exact)), u, bucket));
                EXPECT_GE(n, 0) << exact << " " << more << " " << most;
                EXPECT_LE(n, 1) << exact << " " << more << " " << most;
                exact_by_one += n == 0 ? 1 : 0, ++all;
            }
    EXPECT_GT(exact_by_one, all / 2);
}

TEST(TailTest, Integers) {
    ExprPool p;
    const Expr u = p.index(kU), minus = p.isum(0, {{-1, u}});
    const auto clamped = [&](Expr e, int low, int high) {
        return p.apply(Op::Min, p.apply(Op::Max, e, p.integer(low)), p.integer(high));
    };
    EXPECT_EQ(late(p, clamped(u, -3, 17)), 0);
    EXPECT_EQ(late(p, clamped(minus, -3, 17)), 0);
    EXPECT_EQ(late(p, clamped(p.isum(5, {{3, u}}), -3, 18)), 0);
    EXPECT_EQ(late(p, clamped(p.isum(5, {{-3, u}}), -18, 3)), 0);
    EXPECT_EQ(late(p, clamped(p.apply(Op::FloorDiv, u, p.integer(4)), 0, 3)), 0);
    EXPECT_EQ(late(p, clamped(p.apply(Op::FloorDiv, minus, p.integer(4)), -3, 3)), 0);
    EXPECT_EQ(late(p, p.cast(Type::Int, p.apply(Op::Lt, u, p.integer(9)))), 0);
    EXPECT_EQ(late(p, p.cast(Type::Int, p.apply(Op::Eq, u, p.integer(9)))), 0);
    EXPECT_EQ(late(p, p.select(p.apply(Op::Le, u, p.integer(6)), u, p.integer(2))), 0);
    EXPECT_EQ(late(p, p.apply(Op::Abs, p.isum(-4, {{1, clamped(u, 0, 9)}}))), 0);
    EXPECT_EQ(late(p, p.apply(Op::Mod, clamped(u, 0, 9), p.integer(4))), 0);
    EXPECT_EQ(late(p, u), -1);
    EXPECT_EQ(late(p, p.apply(Op::Mod, u, p.integer(4))), -1);
    EXPECT_EQ(late(p, clamped(p.mul(u, u), 0, 9)), -1); // no rule
}

TEST(TailTest, Reals) {
    ExprPool p;
    const Expr u = p.index(kU), x = f32(p, p.apply(Op::Max, u, p.integer(1)));
    const auto clipped = [&](Expr real) { return p.apply(Op::Min, p.cast(Type::Int, real), p.integer(7)); };
    for (const Expr e : {p.apply(Op::Sqrt, x), p.apply(Op::Log2, x), p.apply(Op::Mul, p.f32(1.7f), x),
                         p.apply(Op::Div, x, p.f32(3.1f)), p.apply(Op::Mul, p.apply(Op::Log1p, x), p.f32(2.5f))}) {
        const auto n = late(p, clipped(e));
        EXPECT_GE(n, 0) << debug_text(e);
        EXPECT_LE(n, 1) << debug_text(e);
    }
    const Expr slow = p.rsum(0, {{0.25, p.cast(Type::Real, u)}});
    EXPECT_LE(late(p, clipped(slow)), 2);
    EXPECT_GE(late(p, clipped(slow)), 0);
    // a factor that is not positive: it never gets there, and the tail begins beyond all distances
    EXPECT_GT(late(p, clipped(p.apply(Op::Mul, x, p.f32(-2.0f)))), kFar);
}

TEST(TailTest, SharedPartsAreNotAskedForAgainAndAgain) {
    ExprPool p;
    Expr e = p.index(kU);
    for (int n = 0; n < 60; ++n)
        e = p.select(p.apply(Op::Eq, p.arg(3, Type::Int), p.integer(n)), p.isum(n + 1, {{2, e}}), p.isum(-n, {{3, e}}));
    EXPECT_FALSE(tail(p, p.apply(Op::Min, e, p.integer(1000)), kU));
}

} // namespace
