// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/ops.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <set>
#include <string>

namespace cubridge::ir {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr std::int64_t kLeast = std::numeric_limits<std::int64_t>::min();

double real(Op op, double a, double b = 0, double c = 0) {
    const double x[] = {a, b, c};
    return info(op).real(x);
}
float f32(Op op, float a, float b = 0) {
    const float x[] = {a, b};
    return info(op).f32(x);
}
std::int64_t integer(Op op, std::int64_t a, std::int64_t b = 0, std::int64_t c = 0) {
    const std::int64_t x[] = {a, b, c};
    return info(op).integer(x);
}

TEST(OpsTest, EveryRowIsWhole) {
    std::set<std::string> names;
    EXPECT_EQ(all_ops().size(), static_cast<std::size_t>(Op::Count));
    for (const OpInfo& o : all_ops()) {
        EXPECT_EQ(&info(o.op), &o);
        EXPECT_TRUE(names.insert(o.name).second) << o.name;
        const bool of_texts = o.op < Op::RoundF16;
        EXPECT_EQ(std::string(o.torch).rfind("torch.", 0) == 0, of_texts) << o.name;
        EXPECT_EQ(*o.torch == 0, !of_texts) << o.name;
        EXPECT_TRUE(o.real || o.integer) << o.name;
        EXPECT_GT(o.cost, 0) << o.name;
        EXPECT_GE(o.ulp, 0) << o.name;
        for (const std::string text : {o.cuda_f32, o.cuda_f64}) {
            for (int k = 0; k < 3; ++k)
                EXPECT_EQ(text.find("{" + std::to_string(k) + "}") != std::string::npos, k < o.arity) << text;
            EXPECT_EQ(text.find("__"), std::string::npos) << "no intrinsics: " << text;
        }
        const bool logic = o.op >= Op::And && o.op <= Op::Not;
        EXPECT_EQ(o.real == nullptr, logic) << o.name;
        EXPECT_EQ(o.f32 == nullptr, logic || o.op == Op::Where) << o.name;
        EXPECT_EQ(o.bool_out, o.op >= Op::Lt && o.op <= Op::Not) << o.name;
        EXPECT_FALSE(o.real_in && o.integer) << o.name;
    }
}

TEST(OpsTest, FloorDivisionAndModuloFollowPython) {
    const double a[] = {7, -7, 7, -7, 0.5, -0.5}, b[] = {2, 2, -2, -2, 2, 2};
    const double quotient[] = {3, -4, -4, 3, 0, -1}, rest[] = {1, 1, -1, -1, 0.5, 1.5};
    for (int k = 0; k < 6; ++k) {
        EXPECT_EQ(real(Op::FloorDiv, a[k], b[k]), quotient[k]);
        EXPECT_EQ(real(Op::Mod, a[k], b[k]), rest[k]);
        EXPECT_EQ(f32(Op::FloorDiv, static_cast<float>(a[k]), static_cast<float>(b[k])), quotient[k]);
        EXPECT_EQ(f32(Op::Mod, static_cast<float>(a[k]), static_cast<float>(b[k])), rest[k]);
        if (k < 4) {
            EXPECT_EQ(integer(Op::FloorDiv, static_cast<int>(a[k]), static_cast<int>(b[k])), quotient[k]);
            EXPECT_EQ(integer(Op::Mod, static_cast<int>(a[k]), static_cast<int>(b[k])), rest[k]);
        }
    }
    // 1 / 0.1 rounds to 10, yet 0.1 is a little more than a tenth.
    EXPECT_EQ(real(Op::FloorDiv, 1.0, 0.1), 9);
    EXPECT_EQ(real(Op::FloorDiv, 5, 0), kInf);
    EXPECT_TRUE(std::isnan(real(Op::Mod, 5, 0)));
    EXPECT_EQ(real(Op::Mod, 5, kInf), 5);
    EXPECT_EQ(real(Op::Mod, -5, kInf), kInf);
    EXPECT_TRUE(std::signbit(real(Op::FloorDiv, -0.0, 2)));
}

TEST(OpsTest, IntegersNeverTrap) {
    EXPECT_EQ(integer(Op::FloorDiv, 7, 0), 0);
    EXPECT_EQ(integer(Op::Mod, 7, 0), 0);
    EXPECT_EQ(integer(Op::FloorDiv, kLeast, -1), kLeast);
    EXPECT_EQ(integer(Op::Mod, kLeast, -1), 0);
    EXPECT_EQ(integer(Op::Neg, kLeast), kLeast);
    EXPECT_EQ(integer(Op::Abs, kLeast), kLeast);
    EXPECT_EQ(integer(Op::Add, kLeast, -1), std::numeric_limits<std::int64_t>::max());
    EXPECT_EQ(integer(Op::Pow, 3, 4), 81);
    EXPECT_EQ(integer(Op::Pow, -2, 3), -8);
    EXPECT_EQ(integer(Op::Pow, 0, 0), 1);
    EXPECT_EQ(integer(Op::Pow, 2, -1), 0);
    EXPECT_EQ(integer(Op::Pow, 1, -5), 1);
    EXPECT_EQ(integer(Op::Pow, -1, -5), -1);
    EXPECT_EQ(integer(Op::Pow, -1, -4), 1);
}

TEST(OpsTest, ExtremaPropagateNaN) {
    for (const Op op : {Op::Min, Op::Max}) {
        EXPECT_TRUE(std::isnan(real(op, kNaN, 1)));
        EXPECT_TRUE(std::isnan(real(op, 1, kNaN)));
        EXPECT_TRUE(std::isnan(f32(op, 1, std::nanf(""))));
        EXPECT_TRUE(std::isnan(f32(op, std::nanf(""), 1)));
    }
    EXPECT_EQ(real(Op::Min, -kInf, 3), -kInf);
    EXPECT_EQ(real(Op::Max, -kInf, 3), 3);
    EXPECT_EQ(integer(Op::Max, -4, 3), 3);
    EXPECT_EQ(integer(Op::Min, -4, 3), -4);
}

TEST(OpsTest, PowersTakeTorchsShortcuts) {
    EXPECT_TRUE(std::isnan(real(Op::Pow, -kInf, 0.5)));
    EXPECT_EQ(real(Op::Pow, 4, -0.5), 0.5);
    EXPECT_EQ(real(Op::Pow, 2, 10), 1024);
    EXPECT_EQ(real(Op::Pow, -3, 2), 9);
    EXPECT_EQ(real(Op::Pow, -2, 3), -8);
    EXPECT_EQ(real(Op::Pow, 2, -2), 0.25);
    EXPECT_EQ(real(Op::Pow, 0, -1), kInf);
    EXPECT_EQ(f32(Op::Pow, 1.1f, 3), 1.1f * 1.1f * 1.1f);
}

TEST(OpsTest, RoundIsHalfToEven) {
    const double x[] = {0.5, 1.5, 2.5, -0.5, -1.5, 2.4, kInf}, y[] = {0, 2, 2, -0.0, -2, 2, kInf};
    for (int k = 0; k < 7; ++k) {
        EXPECT_EQ(real(Op::Round, x[k]), y[k]);
        EXPECT_EQ(f32(Op::Round, static_cast<float>(x[k])), static_cast<float>(y[k]));
    }
    EXPECT_EQ(real(Op::Trunc, -1.7), -1);
    EXPECT_EQ(real(Op::Floor, -1.2), -2);
    EXPECT_EQ(real(Op::Ceil, -1.7), -1);
    for (const Op op : {Op::Floor, Op::Ceil, Op::Trunc, Op::Round}) EXPECT_EQ(integer(op, -3), -3);
}

TEST(OpsTest, RoundingToSixteenBits) {
    const double x[] = {1 + 0x1p-9, 1 + 3 * 0x1p-8, 1 + 0x1p-8, 1e39, -3.4e38, 0x1p-134, 3 * 0x1p-134, -0.0, kInf};
    const double bf16[] = {1, 1 + 0x1p-6, 1, kInf, -kInf, 0, 0x1p-132, 0, kInf};
    const double y[] = {1 + 0x1p-11, 1 + 3 * 0x1p-11, 65519, 65520, -1e300, 0x1p-25, 3 * 0x1p-25, 0x1.8p-15, -kInf};
    const double f16[] = {1, 1 + 0x1p-9, 65504, kInf, -kInf, 0, 0x1p-23, 0x1.8p-15, -kInf};
    for (int k = 0; k < 9; ++k) {
        EXPECT_EQ(real(Op::RoundBF16, x[k]), bf16[k]) << k;
        EXPECT_EQ(f32(Op::RoundBF16, static_cast<float>(x[k])), static_cast<float>(real(Op::RoundBF16, x[k]))) << k;
        EXPECT_EQ(real(Op::RoundF16, y[k]), f16[k]) << k;
        EXPECT_EQ(f32(Op::RoundF16, static_cast<float>(y[k])), static_cast<float>(f16[k])) << k;
    }
    EXPECT_TRUE(std::signbit(real(Op::RoundBF16, -0.0)));
    EXPECT_TRUE(std::isnan(real(Op::RoundF16, kNaN)));
}

TEST(OpsTest, SigmoidIsStableAtBothEnds) {
    EXPECT_EQ(real(Op::Sigmoid, 0), 0.5);
    EXPECT_EQ(real(Op::Sigmoid, 1000), 1);
    EXPECT_EQ(real(Op::Sigmoid, -1000), 0);
    EXPECT_NEAR(real(Op::Sigmoid, -700) / std::exp(-700.0), 1, 1e-15);
    EXPECT_NEAR(real(Op::Sigmoid, 1), 0.73105857863000487925, 1e-16);
    EXPECT_EQ(real(Op::Sigmoid, kInf), 1);
    EXPECT_EQ(real(Op::Sigmoid, -kInf), 0);
    EXPECT_TRUE(std::isnan(real(Op::Sigmoid, kNaN)));
}

TEST(OpsTest, FunctionsAreTheirDefinitions) {
    struct Case {
        Op op;
        double x, y;
    };
    const Case cases[] = {
        {Op::Sqrt, 2, 1.41421356237309504880},
        {Op::Rsqrt, 4, 0.5},
        {Op::Exp, 1, 2.71828182845904523536},
        {Op::Exp2, 10, 1024},
        {Op::Expm1, 1e-10, 1.00000000005e-10},
        {Op::Log, 10, 2.30258509299404568402},
        {Op::Log2, 8, 3},
        {Op::Log10, 1000, 3},
        {Op::Log1p, 1e-10, 9.9999999995e-11},
        {Op::Tanh, 0.5, 0.46211715726000975850},
        {Op::Sin, 1, 0.84147098480789650665},
        {Op::Cos, 1, 0.54030230586813971740},
        {Op::Tan, 1, 1.55740772465490223051},
        {Op::Atan, 1, 0.78539816339744830962},
        {Op::Erf, 0.5, 0.52049987781304653768},
        {Op::Neg, 2, -2},
        {Op::Abs, -2, 2},
    };
    for (const Case& c : cases) {
        EXPECT_NEAR(real(c.op, c.x), c.y, 4e-16 * std::fabs(c.y)) << info(c.op).name;
        if (c.op != Op::Log1p && c.op != Op::Expm1) { // 1e-10 itself rounds
            EXPECT_FLOAT_EQ(f32(c.op, static_cast<float>(c.x)), static_cast<float>(c.y)) << info(c.op).name;
        }
    }
    EXPECT_NEAR(real(Op::Atan2, -1, -1), -2.35619449019234492885, 4e-16);
    EXPECT_EQ(real(Op::Log, 0), -kInf);
    EXPECT_EQ(real(Op::Add, 2, 3), 5);
    EXPECT_EQ(real(Op::Sub, 2, 3), -1);
    EXPECT_EQ(real(Op::Mul, 2, 3), 6);
    EXPECT_EQ(real(Op::Div, 1, 0), kInf);
    EXPECT_EQ(f32(Op::Div, 1, 3), 1.0f / 3.0f);
}

TEST(OpsTest, ComparisonsAndLogic) {
    EXPECT_EQ(real(Op::Lt, 1, 2), 1);
    EXPECT_EQ(real(Op::Le, 2, 2), 1);
    EXPECT_EQ(real(Op::Gt, 1, 2), 0);
    EXPECT_EQ(real(Op::Ge, 1, 2), 0);
    EXPECT_EQ(real(Op::Eq, kNaN, kNaN), 0);
    EXPECT_EQ(real(Op::Ne, kNaN, kNaN), 1);
    EXPECT_EQ(integer(Op::Lt, -1, 0), 1);
    EXPECT_EQ(f32(Op::Ge, 1, 1), 1);
    EXPECT_EQ(integer(Op::And, 6, 3), 2);
    EXPECT_EQ(integer(Op::Or, 6, 3), 7);
    EXPECT_EQ(integer(Op::Xor, 6, 3), 5);
    EXPECT_EQ(integer(Op::Not, 1), 0);
    EXPECT_EQ(integer(Op::Not, 0), 1);
    EXPECT_EQ(real(Op::Where, 1, 5, 6), 5);
    EXPECT_EQ(real(Op::Where, 0, 5, kNaN) == kNaN, false);
    EXPECT_EQ(integer(Op::Where, 0, 5, 6), 6);
}

} // namespace
} // namespace cubridge::ir
