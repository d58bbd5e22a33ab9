// Classes of single tiles with numbers; random masks are in analyse_test.cpp. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/mask.h"
#include <gtest/gtest.h>
#include <map>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::mask;

class ClassifyTest : public testing::Test {
protected:
    Class of(Expr keep, Bounds rows, Bounds keys, std::int64_t b = 0) {
        return classify(keep, b, 0, rows, keys, [&](Expr e) -> std::optional<Bounds> {
            const auto it = known.find(e);
            return it == known.end() ? std::nullopt : std::optional(it->second);
        });
    }
    ExprPool p;
    const Expr b = p.index(axis::b), i = p.index(axis::i), j = p.index(axis::j);
    std::map<Expr, Bounds> known;
};

TEST_F(ClassifyTest, Causal) {
    const Expr keep = p.apply(Op::Le, j, i);
    EXPECT_EQ(of(keep, {0, 63}, {64, 127}), Class::None);
    EXPECT_EQ(of(keep, {0, 63}, {63, 127}), Class::Some);
    EXPECT_EQ(of(keep, {63, 127}, {0, 63}), Class::All);
}

TEST_F(ClassifyTest, DataThatIsKnownAndNot) {
    const Expr x = p.load(4, Type::Int, {i}), y = p.load(4, Type::Int, {j});
    const Expr keep = p.apply(Op::Eq, x, y);
    EXPECT_EQ(of(keep, {0, 7}, {8, 15}), Class::Some);
    known = {{x, {1, 2}}, {y, {3, 4}}};
    EXPECT_EQ(of(keep, {0, 7}, {8, 15}), Class::None);
    known = {{x, {1, 2}}, {y, {2, 4}}};
    EXPECT_EQ(of(keep, {0, 7}, {8, 15}), Class::Some);
    known = {{x, {2, 2}}, {y, {2, 2}}};
    EXPECT_EQ(of(keep, {0, 7}, {8, 15}), Class::All);
}

// A count over offsets: known as a whole, or from its extent, or from what it compares.
TEST_F(ClassifyTest, Counts) {
    const Expr r = p.index(15), n = p.dim(dims::of(9, 0)), at = p.load(9, Type::Int, {r});
    const Expr count = p.reduce(ReduceOp::Sum, p.cast(Type::Int, p.apply(Op::Le, at, i)), 15, n);
    const auto at_least = [&](std::int64_t k) { return p.apply(Op::Ge, count, p.integer(k)); };
    EXPECT_EQ(of(at_least(0), {0, 7}, {0, 7}), Class::All);
    EXPECT_EQ(of(at_least(4), {0, 7}, {0, 7}), Class::Some);
    known[n] = {3, 3};
    EXPECT_EQ(of(at_least(4), {0, 7}, {0, 7}), Class::None);
    known[count] = {2, 2};
    EXPECT_EQ(of(at_least(2), {0, 7}, {0, 7}), Class::All);
    known.erase(count);
    const Expr past = p.reduce(ReduceOp::Sum, p.cast(Type::Int, p.apply(Op::Le, r, i)), 15, n);
    EXPECT_EQ(of(p.apply(Op::Eq, past, p.integer(3)), {2, 7}, {0, 7}), Class::All); // 0, 1, 2 are all at most 2
    EXPECT_EQ(of(p.apply(Op::Eq, past, p.integer(3)), {1, 7}, {0, 7}), Class::Some);
}

TEST_F(ClassifyTest, RealsOnlyWhereTheyAreIntegers) {
    const auto real = [&](double c, Expr e) { return p.apply(Op::Mul, p.real(c), p.cast(Type::Real, e)); };
    EXPECT_EQ(of(p.apply(Op::Lt, real(2, i), real(3, j)), {0, 6}, {5, 9}), Class::All);
    EXPECT_EQ(of(p.apply(Op::Lt, real(0.5, i), real(3, j)), {0, 6}, {5, 9}), Class::Some);
}

TEST_F(ClassifyTest, SizesAreNeverNegative) {
    const Expr keep = p.apply(Op::Lt, i, p.add(p.dim(dims::Sk), p.integer(8)));
    EXPECT_EQ(of(keep, {0, 7}, {0, 7}), Class::All);
    EXPECT_EQ(of(keep, {0, 8}, {0, 7}), Class::Some);
}

} // namespace
