// The judge on right and wrong kernels that round their weights, as tensor cores make them.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/judge.h"
#include "runtime/check/rounding.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>
#include <random>

using cubridge::ir::Array;
using cubridge::ir::DType;
using namespace cubridge::runtime;

namespace {

struct Attention {
    DType type = DType::BF16;
    std::int64_t heads = 2, rows = 24, keys = 1000, dim = 64;
    std::vector<double> q, k, v;

    Attention(DType t, double loud, std::uint64_t seed, std::int64_t n = 1000, std::int64_t d = 64)
        : type(t), keys(n), dim(d) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        const auto fill = [&](std::vector<double>& x, std::int64_t n, double by) {
            for (; n > 0; --n) x.push_back(rounded(by * normal(random), type));
        };
        fill(q, heads * rows * dim, loud), fill(k, heads * keys * dim, 1), fill(v, heads * keys * dim, 1);
    }

    // Tile by tile with a running maximum, in `Real` throughout; `narrow` rounds the weights before the product.
    template <class Real>
    Array run(std::int64_t attended, double scale, std::int64_t tile, bool narrow, bool narrow_out) const {
        Array out{DType::F64, {1, heads, rows, dim}, {}};
        for (std::int64_t row = 0; row < heads * rows; ++row) {
            const auto base = static_cast<std::size_t>(row / rows * keys * dim);
            Real most = -std::numeric_limits<Real>::infinity(), mass = 0;
            std::vector<Real> sum(static_cast<std::size_t>(dim));
            for (std::int64_t from = 0; from < attended; from += tile) {
                std::vector<Real> s;
                Real before = most;
                for (std::int64_t j = from; j < std::min(attended, from + tile); ++j) {
                    Real dot = 0;
                    for (std::int64_t c = 0; c < dim; ++c)
                        dot += static_cast<Real>(q[static_cast<std::size_t>(row * dim + c)]) *
                               static_cast<Real>(k[base + static_cast<std::size_t>(j * dim + c)]);
                    s.push_back(dot * static_cast<Real>(scale));
                    most = std::max(most, s.back());
                }
                const Real shrink = std::exp(before - most);
                mass *= shrink;
                for (Real& x : sum) x *= shrink;
                for (std::size_t n = 0; n < s.size(); ++n) {
                    const Real w = std::exp(s[n] - most);
                    mass += w;
                    const Real p = narrow ? static_cast<Real>(rounded(static_cast<double>(w), type)) : w;
                    for (std::size_t d = 0; d < sum.size(); ++d)
                        sum[d] +=
                            p * static_cast<Real>(v[base + (static_cast<std::size_t>(from) + n) * sum.size() + d]);
                }
            }
            for (const Real x : sum) {
                const auto o = static_cast<double>(x / mass);
                out.values.push_back(narrow_out ? rounded(o, type) : o);
            }
        }
        return out;
    }

    Judgement judge(const Array& got, bool measured = true) const {
        const Array exact = run<double>(keys, 0.125, keys, false, false),
                    baseline = run<double>(keys, 0.125, keys, true, false);
        return judge_output(got, exact, type, keys, measured ? &baseline : nullptr);
    }
};

const double kScale = 0.125;

TEST(JudgeByBaseline, AKernelThatRoundsItsWeightsPasses) {
    double without = 0, with = 0;
    for (const DType t : {DType::BF16, DType::F16})
        for (const double loud : {1.0, 6.0})
            for (const std::int64_t keys : {2, 3, 17, 65, 257, 1000})
                for (const std::int64_t dim : {8, 64}) {
                    const Attention a(t, loud, static_cast<std::uint64_t>(keys), keys, dim);
                    const Array got = a.run<float>(keys, kScale, 32, true, true);
                    const Judgement j = a.judge(got);
                    EXPECT_EQ(j.wrong, "") << cubridge::ir::short_name(t) << ", queries times " << loud << ", " << keys
                                           << " keys of " << dim;
                    with = std::max(with, j.ratio);
                    without = std::max(without, a.judge(got, false).ratio);
                }
    EXPECT_LE(with, 2);
    EXPECT_GT(without, 2) << "rounding the exact row once is too little to ask for";
}

TEST(JudgeByBaseline, AScaleThatIsAPercentOffFails) {
    for (const DType t : {DType::BF16, DType::F16}) {
        const Attention a(t, 6, 1);
        EXPECT_NE(a.judge(a.run<float>(a.keys, 1.01 * kScale, 96, true, true)).wrong, "");
    }
}

TEST(JudgeByBaseline, ABoundaryOffByOneAmongAThousandKeysFails) {
    for (const DType t : {DType::BF16, DType::F16}) {
        const Attention a(t, 1, 1);
        const Judgement j = a.judge(a.run<float>(a.keys - 1, kScale, 96, true, true));
        EXPECT_NE(j.wrong, "") << cubridge::ir::short_name(t);
        EXPECT_GT(j.ratio, 2);
    }
}

TEST(JudgeByBaseline, TheErrorOfANeighbouringRowCountsThatOfAnotherHeadDoesNot) {
    Array exact{DType::F64, {1, 2, 12, 1}, std::vector<double>(24, 1.0)}, baseline = exact, got = exact;
    baseline.values[3] += 4 * ulp(1, DType::F16);
    got.values[11] += 7 * ulp(1, DType::F16); // 8 rows on
    const Judgement near = judge_output(got, exact, DType::F16, 1, &baseline);
    EXPECT_EQ(near.wrong, "");
    EXPECT_DOUBLE_EQ(near.ratio, 7.0 / 4);
    got = exact;
    got.values[12] += 7 * ulp(1, DType::F16); // the first row of the next head
    EXPECT_NE(judge_output(got, exact, DType::F16, 1, &baseline).wrong.find("o[0, 1, 0, 0]"), std::string::npos);
}

TEST(JudgeByBaseline, ABaselineThatIsWrongItselfMeasuresNothing) {
    const Array exact{DType::F64, {1, 1, 2, 2}, {1, 2, 3, 4}}, baseline{DType::F64, {1, 1, 2, 2}, {1, 2.5, 3, 4}};
    EXPECT_NE(judge_output(exact, exact, DType::F16, 1, &baseline).wrong.find("the baseline"), std::string::npos);
}

TEST(JudgeByBaseline, AnLseMayBeOffByTwiceWhatRoundedOperandsCost) {
    const Array exact{DType::F64, {1, 1, 2}, {3, 3}}, measured{DType::F64, {1, 1, 2}, {3.01, 3}};
    const Array got{DType::F64, {1, 1, 2}, {3, 3.019}};
    EXPECT_EQ(judge_lse(got, exact, 1, &measured).wrong, "");
    EXPECT_NE(judge_lse(got, exact, 1).wrong, "");
}

} // namespace
