// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/judge.h"
#include "runtime/check/rounding.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <tuple>

using cubridge::ir::Array;
using cubridge::ir::DType;
using namespace cubridge::runtime;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

Array rows(std::vector<double> values, std::int64_t width) {
    const auto n = static_cast<std::int64_t>(values.size());
    return {DType::F64, {n / width, width}, std::move(values)};
}

TEST(Judge, RoundingOncePassesWithARatioOfOneAtMost) {
    Array exact = rows({0.3, -1.7, 2.9, 0.001}, 4), got = exact;
    for (double& v : got.values) v = rounded(v, DType::BF16);
    const Judgement j = judge_output(got, exact, DType::BF16, 10);
    EXPECT_EQ(j.wrong, "");
    EXPECT_LE(j.ratio, 1);
}

TEST(Judge, MoreThanOneUlpOfTheRowsLargestIsWrong) {
    const Array exact = rows({1, 0.5, 4, 0.25}, 2);
    Array got = exact;
    got.values[1] += 1.01 * ulp(1, DType::F16); // the row's largest is 1
    const Judgement j = judge_output(got, exact, DType::F16, 10);
    EXPECT_NE(j.wrong.find("o[0, 1]"), std::string::npos) << j.wrong;
    EXPECT_GT(j.ratio, 2);
    got = exact;
    got.values[3] += 1.01 * ulp(1, DType::F16); // here it is 4: fine
    EXPECT_EQ(judge_output(got, exact, DType::F16, 10).wrong, "");
}

TEST(Judge, ARowScaledByAPercentIsWrongInEveryType) {
    Array exact = rows({}, 1);
    exact.shape = {8, 8};
    for (int n = 0; n < 64; ++n) exact.values.push_back(std::sin(n + 1.0));
    Array got = exact;
    for (double& v : got.values) v *= 1.01;
    for (const DType t : {DType::F16, DType::BF16, DType::F32}) EXPECT_NE(judge_output(got, exact, t, 10).wrong, "");
}

// Seen: 0.0386 in bfloat16 and 0.0048 in float16 where two attentions of one key nearly cancel.
TEST(Judge, ABaselineThatIsFarOffIsNoMeasure) {
    const Array exact = rows({1, -2, 3, 4}, 4);
    for (const auto& [type, off, measures] : {std::tuple{DType::BF16, 0.04, true},
                                              {DType::BF16, 0.09, false},
                                              {DType::F16, 0.005, true},
                                              {DType::F16, 0.02, false}}) {
        Array baseline = exact;
        for (double& v : baseline.values) v *= 1 + off;
        const Judgement j = judge_output(exact, exact, type, 10, &baseline, 2);
        EXPECT_NE(judge_output(exact, exact, type, 10, &baseline).wrong.find("it is no measure"), std::string::npos);
        EXPECT_EQ(j.wrong.find("it is no measure") == j.wrong.npos, measures) << off << j.wrong;
        EXPECT_EQ(j.ratio, 0);
    }
}

TEST(Judge, SpecialValuesMustSitWhereTheReferenceHasThem) {
    const double nan = std::nan("");
    EXPECT_EQ(judge_output(rows({nan, 1}, 2), rows({nan, 1}, 2), DType::F16, 1).wrong, "");
    EXPECT_NE(judge_output(rows({0, 1}, 2), rows({nan, 1}, 2), DType::F16, 1).wrong, "");
    EXPECT_NE(judge_output(rows({nan, 1}, 2), rows({0, 1}, 2), DType::F16, 1).wrong, "");
    EXPECT_NE(judge_output(rows({kInfinity, 1}, 2), rows({-kInfinity, 1}, 2), DType::F16, 1).wrong, "");
    EXPECT_EQ(judge_output(rows({kInfinity, 1}, 2), rows({1e6, 1}, 2), DType::F16, 1).wrong, "")
        << "beyond the type's largest number";
    EXPECT_EQ(judge_lse(rows({-kInfinity, 1}, 2), rows({-kInfinity, 1}, 2), 1).wrong, "");
    EXPECT_NE(judge_lse(rows({-1e30, 1}, 2), rows({-kInfinity, 1}, 2), 1).wrong, "");
}

TEST(Judge, LseInTheRequestsBase) {
    EXPECT_EQ(judge_lse(rows({1}, 1), rows({std::log(2.0)}, 1), 1 / std::log(2.0)).wrong, "");
    EXPECT_NE(judge_lse(rows({std::log(2.0)}, 1), rows({std::log(2.0)}, 1), 1 / std::log(2.0)).wrong, "");
}

TEST(Judge, ShapesMustAgree) {
    EXPECT_NE(judge_exact(rows({1, 2}, 2), rows({1, 2}, 1), 1e-9).wrong, "");
}

} // namespace
