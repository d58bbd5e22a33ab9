// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/evaluate.h"
#include "ir/mask/mask.h"
#include "ir/mask/sign.h"
#include <gtest/gtest.h>
#include <random>

namespace {

using namespace cubridge::ir;
using namespace cubridge::ir::mask;

TEST(SignTest, Proves) {
    ExprPool p;
    const Expr i0 = p.index(tile::i0), i1 = p.index(tile::i1), j0 = p.index(tile::j0), j1 = p.index(tile::j1);
    const Expr x = p.arg(3, Type::Int), size = p.dim(dims::Sk);
    EXPECT_TRUE(never_negative(p, p.isum(-1, {{1, i1}, {-1, i0}})));
    EXPECT_FALSE(never_negative(p, p.isum(-2, {{1, i1}, {-1, i0}})));
    EXPECT_TRUE(never_negative(p, p.isum(-2, {{1, i1}, {-1, i0}, {3, j1}, {-1, j0}, {1, size}})));
    EXPECT_FALSE(never_negative(p, x));
    EXPECT_TRUE(never_negative(p, p.mul(x, x)));
    EXPECT_TRUE(never_negative(p, p.sub(p.extremum(Kind::Max, {x, i1}), i0)));
    EXPECT_FALSE(never_negative(p, p.sub(p.extremum(Kind::Min, {x, i1}), i0)));
    EXPECT_TRUE(never_negative(p, p.sub(x, p.extremum(Kind::Min, {x, i1}))));
    EXPECT_TRUE(never_negative(p, p.apply(Op::Mod, x, p.integer(4))));
    EXPECT_FALSE(never_negative(p, p.apply(Op::Mod, x, p.integer(-4))));
    EXPECT_FALSE(never_negative(p, p.apply(Op::FloorDiv, i0, x)));
}

// What is proved holds for numbers.
TEST(SignTest, SoundOnRandomExpressions) {
    std::mt19937 random(7);
    const auto upto = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
    int proved = 0;
    for (int trial = 0; trial < 5000; ++trial) {
        ExprPool p;
        const auto make = [&](auto&& self, int depth) -> Expr {
            if (depth == 0) {
                const int k = upto(7);
                return k < 4 ? p.index(tile::i0 + k) : k == 4 ? p.arg(3, Type::Int) : p.integer(upto(9) - 2);
            }
            const Expr a = self(self, depth - 1), c = self(self, depth - 1);
            switch (upto(7)) {
            case 0: return p.sub(a, c);
            case 1: return p.mul(a, c);
            case 2: return p.extremum(Kind::Max, {a, c});
            case 3: return p.extremum(Kind::Min, {a, c});
            case 4: return p.apply(Op::FloorDiv, a, c);
            case 5: return p.apply(Op::Mod, a, c);
            default: return p.add(a, c);
            }
        };
        const Expr e = make(make, 3);
        if (!never_negative(p, e)) continue;
        ++proved;
        for (int k = 0; k < 10; ++k) {
            Environment env;
            env.inputs[3] = {{}, std::make_shared<const std::vector<double>>(1, upto(9) - 4)};
            const int i0 = upto(6), j0 = upto(6);
            std::vector<Expr> map(tile::j1 + 1, nullptr);
            map[tile::i0] = p.integer(i0), map[tile::i1] = p.integer(i0 + 1 + upto(4));
            map[tile::j0] = p.integer(j0), map[tile::j1] = p.integer(j0 + 1 + upto(4));
            ASSERT_GE(Evaluator(p, env).value(p.substitute(e, map)), 0) << debug_text(e);
        }
    }
    EXPECT_GT(proved, 500);
}

} // namespace
