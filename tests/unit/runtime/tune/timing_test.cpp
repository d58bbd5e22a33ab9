// Medians, spreads and the comparison of outputs. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/rounding.h"
#include "runtime/tune/inputs.h"
#include "runtime/tune/timing.h"
#include "tests/unit/runtime/support.h"
#include <algorithm>
#include <cmath>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

TEST(Timing, IsTheMedianOfTheMediansOfBlocks) {
    // The first third of a block is what another kernel left: not counted.
    const auto t = timing_of({{9, 9, 1, 1, 1, 1}, {9, 9, 1.2F, 1.2F, 1.2F, 7}, {9, 9, 1.1F, 1.1F, 1.1F, 1.1F}});
    EXPECT_NEAR(t.us, 1100, 1e-3);
    EXPECT_NEAR(t.spread, 0.2 / 1.1, 1e-6);
    EXPECT_EQ(t.launches, 12);
    EXPECT_EQ(timing_of({}).launches, 0);
    EXPECT_NEAR(timing_of({{2}}).us, 2000, 1e-3);
    EXPECT_EQ(timing_of({{2}}).spread, 0);
}

std::vector<std::uint16_t> encoded(const std::vector<double>& x, ir::DType type) {
    std::vector<std::uint16_t> out(x.size());
    for (std::size_t k = 0; k < x.size(); ++k) encode(x[k], type, reinterpret_cast<std::byte*>(&out[k]));
    return out;
}

TEST(Timing, OutputsMayDifferAsTwoRightKernelsDo) {
    for (const auto type : {ir::DType::F16, ir::DType::BF16}) {
        std::vector<double> x(1000), y(1000), z(1000);
        for (std::size_t k = 0; k < x.size(); ++k) {
            x[k] = std::sin(static_cast<double>(k));
            y[k] = x[k] * (1 + (type == ir::DType::F16 ? 1e-3 : 8e-3));
            z[k] = x[k] * (k % 10 == 0 ? 1.2 : 1);
        }
        EXPECT_EQ(differs(encoded(x, type), encoded(x, type), type), "");
        EXPECT_EQ(differs(encoded(x, type), encoded(y, type), type), "");
        EXPECT_NE(differs(encoded(x, type), encoded(z, type), type), "");
        const double nan = std::nan("");
        x[5] = y[5] = nan; // a row without keys
        EXPECT_EQ(differs(encoded(x, type), encoded(y, type), type), "");
        y[6] = nan;
        EXPECT_NE(differs(encoded(x, type), encoded(y, type), type), "");
    }
}

constexpr char kDocuments[] = R"(
import torch
def attention(q, k, v, doc, prefix: int, bias, window=64):
    s = q @ k.transpose(-2, -1) * q.size(-1) ** -0.5 + bias[:, None, None]
    i, j = torch.arange(q.size(2))[:, None], torch.arange(k.size(2))[None, :]
    keep = (doc[i] == doc[j]) & ((j <= i) | (j < prefix)) & (i - j < window)
    return torch.softmax(s.masked_fill(~keep, float("-inf")), -1) @ v
)";

TEST(TuneInputs, AreDrawnByWhatTheyAre) {
    const auto spec = parsed(kDocuments);
    ASSERT_NE(spec, nullptr);
    ir::Request r = request_for();
    const auto c = case_of(*spec, r, {2, 1000, 1000, 3});
    ASSERT_TRUE(c);
    EXPECT_EQ(c->Hq, 3);
    const auto drawn = typical_operands(*spec, r, *c, false);
    ASSERT_TRUE(drawn) << drawn.error().message;
    for (std::size_t k = 0; k < spec->inputs().size(); ++k) {
        const auto& x = spec->inputs()[k];
        const auto& given = (*drawn)[k];
        if (x.name == "doc") {
            ASSERT_TRUE(given);
            EXPECT_EQ(given->shape.back(), 1000);
            EXPECT_TRUE(std::is_sorted(given->values.begin(), given->values.end()));
            EXPECT_EQ(given->values.front(), 0);
            EXPECT_EQ(given->values.back(), 3);
        } else if (x.name == "prefix") {
            ASSERT_TRUE(given);
            EXPECT_EQ(given->values, std::vector<double>{250});
        } else if (x.name == "bias") {
            ASSERT_TRUE(given);
            EXPECT_EQ(given->shape, std::vector<std::int64_t>{3});
        } else {
            EXPECT_FALSE(given) << x.name << ": q, k, v are made on the device, `window` is bound";
        }
    }
    EXPECT_FALSE(needs_tame(*spec, r, *c));
    const auto tame = typical_operands(*spec, r, *c, true);
    ASSERT_TRUE(tame);
    for (const auto& a : *tame) {
        if (!a || a->dtype == ir::DType::F32) continue;
        EXPECT_EQ(a->values, std::vector<double>(a->values.size(), 0.0));
    }
}

/// Integers that index: the text says which are too large, before a kernel reads out of bounds.
TEST(TuneInputs, AreTameWhereTheTextRefusesThem) {
    const auto spec = parsed(R"(
import torch
def attention(q, k, v, pick: int):
    s = q @ k.transpose(-2, -1) * torch.tensor([0.25, 0.5])[pick]
    return torch.softmax(s, -1) @ v
)");
    ASSERT_NE(spec, nullptr);
    ir::Request r = request_for();
    const auto c = case_of(*spec, r, {1, 512, 512, 2});
    ASSERT_TRUE(c);
    EXPECT_TRUE(needs_tame(*spec, r, *c));
}

TEST(TuneInputs, WhatIsTooLargeIsSaid) {
    const auto spec = parsed(R"(
import torch
def attention(q, k, v, bias):
    s = q @ k.transpose(-2, -1) + bias[:, :, :q.size(2), :k.size(2)]
    return torch.softmax(s, -1) @ v
)");
    ASSERT_NE(spec, nullptr);
    ir::Request r = request_for();
    const auto c = case_of(*spec, r, {4, 16384, 16384, 32});
    ASSERT_TRUE(c);
    const auto drawn = typical_operands(*spec, r, *c, false);
    ASSERT_FALSE(drawn);
    EXPECT_EQ(drawn.error().kind, "memory");
    EXPECT_NE(drawn.error().message.find("`bias`"), std::string::npos);
}

TEST(TuneInputs, ElementsAreNormal) {
    const auto x = normal_elements(ir::DType::BF16, 1);
    double sum = 0, squares = 0;
    for (const auto& e : x) {
        const double v = decode(reinterpret_cast<const std::byte*>(&e), ir::DType::BF16);
        sum += v, squares += v * v;
    }
    const double n = static_cast<double>(x.size());
    EXPECT_NEAR(sum / n, 0, 0.01);
    EXPECT_NEAR(squares / n, 1, 0.01);
}

} // namespace
} // namespace cubridge::runtime
