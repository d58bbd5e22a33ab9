// The judge on right and wrong kernels that round their weights, as tensor cores make them.
// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/state.h"
#include "ir/spec/variant.h"
#include "runtime/check/judge.h"
#include "runtime/check/rounding.h"
#include <cmath>
#include <functional>
#include <gtest/gtest.h>
#include <limits>
#include <random>
#include <utility>

using cubridge::ir::Array;
using cubridge::ir::DType;
using namespace cubridge::runtime;

namespace {

const double kScale = 0.125;

/// What the check's baseline is printed from, evaluated here.
Array baseline_of(const std::vector<cubridge::ir::Argument>& in, DType type) {
    using namespace cubridge::ir;
    static const auto spec = [] {
        Source source;
        source.text = "import torch\n\n\ndef attention(q, k, v):\n"
                      "    return torch.softmax(q @ k.transpose(-2, -1) * 0.125, dim=-1) @ v\n";
        return *Specification::parse(source);
    }();
    const Baseline b = baseline(spec->scalar(), *spec->variant(), type == DType::F16 ? Op::RoundF16 : Op::RoundBF16);
    return spec::evaluate_outputs(b.scalar, b.scalar.out, in)[0];
}

/// A kernel that may be wrong: the score that it takes weights relative to from key `from` on, where the largest up to
/// that tile's end is `largest`; what it multiplies products by; a factor of key j's weight.
struct Kernel {
    std::function<double(std::int64_t from, double largest)> reference = [](std::int64_t, double largest) {
        return largest;
    };
    double scale = kScale;
    std::function<double(std::int64_t)> factor = [](std::int64_t) { return 1.0; };
    bool narrow = true; ///< rounds weights and output
};

struct Attention {
    DType type = DType::BF16;
    std::int64_t heads = 2, rows = 24, keys = 1000, dim = 64;
    Array q, k, v;

    Attention(DType t, double loud, std::uint64_t seed, std::int64_t n = 1000, std::int64_t d = 64, std::int64_t h = 2,
              std::int64_t r = 24)
        : type(t), heads(h), rows(r), keys(n), dim(d) {
        std::mt19937_64 random(seed);
        std::normal_distribution<double> normal;
        const auto fill = [&](std::int64_t m, double by) {
            Array x{type, {1, heads, m, dim}, {}};
            for (m *= heads * dim; m > 0; --m) x.values.push_back(rounded(by * normal(random), type));
            return x;
        };
        // Scores deviate by `loud` whatever the head dim is.
        q = fill(rows, loud * 8 / std::sqrt(static_cast<double>(dim))), k = fill(keys, 1), v = fill(keys, 1);
    }

    // Tile by tile, in `Real` throughout.
    template <class Real> Array run(const Kernel& how, std::int64_t tile) const {
        Array out{DType::F64, {1, heads, rows, dim}, {}};
        for (std::int64_t row = 0; row < heads * rows; ++row) {
            const auto base = static_cast<std::size_t>(row / rows * keys * dim);
            Real most = -std::numeric_limits<Real>::infinity(), at = most, mass = 0;
            std::vector<Real> sum(static_cast<std::size_t>(dim));
            for (std::int64_t from = 0; from < keys; from += tile) {
                std::vector<Real> s;
                for (std::int64_t j = from; j < std::min(keys, from + tile); ++j) {
                    Real dot = 0;
                    for (std::int64_t c = 0; c < dim; ++c)
                        dot += static_cast<Real>(q.values[static_cast<std::size_t>(row * dim + c)]) *
                               static_cast<Real>(k.values[base + static_cast<std::size_t>(j * dim + c)]);
                    s.push_back(dot * static_cast<Real>(how.scale));
                    most = std::max(most, s.back());
                }
                const Real before = at;
                at = static_cast<Real>(how.reference(from, static_cast<double>(most)));
                const Real shrink = std::exp(before - at);
                mass *= shrink;
                for (Real& x : sum) x *= shrink;
                for (std::size_t n = 0; n < s.size(); ++n) {
                    const Real w =
                        std::exp(s[n] - at) * static_cast<Real>(how.factor(from + static_cast<std::int64_t>(n)));
                    mass += w;
                    const Real p = how.narrow ? static_cast<Real>(rounded(static_cast<double>(w), type)) : w;
                    for (std::size_t d = 0; d < sum.size(); ++d)
                        sum[d] += p * static_cast<Real>(
                                          v.values[base + (static_cast<std::size_t>(from) + n) * sum.size() + d]);
                }
            }
            for (const Real x : sum) {
                const auto o = static_cast<double>(x / mass);
                out.values.push_back(how.narrow ? rounded(o, type) : o);
            }
        }
        return out;
    }

    Judgement judge(const Array& got, bool measured = true) const {
        Kernel exactly;
        exactly.narrow = false;
        const Array exact = run<double>(exactly, keys);
        if (!measured) return judge_output(got, exact, type, keys);
        const Array baseline = baseline_of({q, k, v}, type);
        return judge_output(got, exact, type, keys, &baseline);
    }
};

TEST(JudgeByBaseline, AKernelThatRoundsItsWeightsPasses) {
    double without = 0, with = 0;
    for (const DType t : {DType::BF16, DType::F16})
        for (const double loud : {1.0, 6.0})
            for (const std::int64_t keys : {2, 3, 17, 65, 257, 1000})
                for (const std::int64_t dim : {8, 64}) {
                    const Attention a(t, loud, static_cast<std::uint64_t>(keys), keys, dim);
                    const Array got = a.run<float>({}, 32);
                    const Judgement j = a.judge(got);
                    EXPECT_EQ(j.wrong, "") << cubridge::ir::short_name(t) << ", queries times " << loud << ", " << keys
                                           << " keys of " << dim;
                    with = std::max(with, j.ratio);
                    without = std::max(without, a.judge(got, false).ratio);
                }
    EXPECT_LE(with, 1.6);
    EXPECT_GT(without, 2) << "rounding the exact row once is too little to ask for";
}

// Each row a head of its own, so that no neighbour's error stands in for its own: peaked and flat rows, weights
// relative to any one number, to another in each tile, and to the one at which the largest loses most; eight columns,
// and one that has no others.
TEST(JudgeByBaseline, AnyReferenceOfTheWeightsPasses) {
    std::mt19937_64 random(5);
    std::uniform_real_distribution<double> binade(0, std::log(2.0));
    double worst = 0;
    std::int64_t rows = 0;
    for (const DType t : {DType::BF16, DType::F16})
        for (const double loud : {0.0, 0.3, 1.0, 3.0, 8.0})
            for (const std::int64_t keys : {1, 2, 3, 4, 6, 17, 64})
                for (int kind = 0; kind < 6; ++kind) {
                    const Attention a(t, loud, random(), keys, kind < 3 ? 8 : 1, 100, 1);
                    const double most = std::log1p((t == DType::BF16 ? 0x1p-8 : 0x1p-11) * 1.01);
                    Kernel how;
                    double first = 0;
                    how.reference = [&](std::int64_t from, double largest) {
                        if (from == 0 || kind % 3 == 1 || largest > first + 8)
                            first = largest - (kind % 3 == 2 ? most : binade(random));
                        return first;
                    };
                    const Judgement j = a.judge(a.run<float>(how, 16));
                    EXPECT_EQ(j.wrong, "")
                        << cubridge::ir::short_name(t) << ", " << loud << ", " << keys << " keys, " << kind;
                    worst = std::max(worst, j.ratio);
                    rows += a.heads;
                }
    EXPECT_EQ(rows, 42000);
    EXPECT_LE(worst, 1.6);
    EXPECT_GE(worst, 0.9) << "and it asks for no less than rounding gives";
}

TEST(JudgeByBaseline, AScaleThatIsAPercentOffFails) {
    for (const DType t : {DType::BF16, DType::F16})
        for (const std::int64_t keys : {64, 1000}) {
            const Attention a(t, 1, 1, keys);
            Kernel how;
            how.scale = 1.01 * kScale;
            EXPECT_GT(a.judge(a.run<float>(how, 96)).ratio, 2) << cubridge::ir::short_name(t) << ", " << keys;
        }
}

TEST(JudgeByBaseline, ABoundaryOffByOneAmongAThousandKeysFails) {
    for (const DType t : {DType::BF16, DType::F16}) {
        const Attention a(t, 1, 1);
        Kernel how;
        how.factor = [&](std::int64_t j) { return j < a.keys - 1 ? 1.0 : 0.0; };
        const Judgement j = a.judge(a.run<float>(how, 96));
        EXPECT_NE(j.wrong, "") << cubridge::ir::short_name(t);
        EXPECT_GT(j.ratio, 2);
    }
}

TEST(JudgeByBaseline, ATileThatIsRescaledByTooMuchFails) {
    for (const auto& [t, by] : {std::pair{DType::BF16, 1.04}, std::pair{DType::F16, 1.01}}) {
        const Attention a(t, 1, 1, 200);
        Kernel how;
        how.factor = [by = by](std::int64_t j) { return j < 96 ? by : 1.0; };
        EXPECT_GT(a.judge(a.run<float>(how, 96)).ratio, 2) << cubridge::ir::short_name(t);
    }
}

TEST(JudgeByBaseline, WeightsThatLoseFourTimesAsMuchFail) {
    for (const auto& [t, by] : {std::pair{DType::BF16, 0x1p-6}, std::pair{DType::F16, 0x1p-9}}) {
        const Attention a(t, 1, 1, 200);
        Kernel how;
        how.factor = [by = by](std::int64_t j) { return j % 2 == 0 ? 1 + by : 1 - by; };
        EXPECT_GT(a.judge(a.run<float>(how, 96)).ratio, 2) << cubridge::ir::short_name(t);
    }
}

TEST(JudgeByBaseline, TheErrorOfANeighbouringRowCountsThatOfAnotherHeadDoesNot) {
    Array exact{DType::F64, {1, 2, 12, 1}, std::vector<double>(24, 1.0)}, baseline = exact, got = exact;
    baseline.values[3] += 4 * ulp(1, DType::F16);
    got.values[11] += 8 * ulp(1, DType::F16); // 8 rows on
    const Judgement near = judge_output(got, exact, DType::F16, 1, &baseline);
    EXPECT_EQ(near.wrong, "");
    EXPECT_DOUBLE_EQ(near.ratio, 8 / 4.5) << "half an ulp for rounding the baseline";
    got = exact;
    got.values[12] += 8 * ulp(1, DType::F16); // the first row of the next head
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
