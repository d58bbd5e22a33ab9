// What configurations are measured on. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/rounding.h"
#include "runtime/tune/inputs.h"
#include "tests/unit/runtime/support.h"
#include <algorithm>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

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
