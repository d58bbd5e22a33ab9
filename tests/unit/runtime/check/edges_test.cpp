// Cases around tiles and numbers. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/edges.h"
#include "runtime/check/inputs.h"
#include "tests/unit/runtime/support.h"
#include <set>

namespace cubridge::runtime {
namespace {

using namespace testing_support;

constexpr char kWindow[] = R"(
import torch
def attention(q, k, v, reach=700):
    group = q.shape[1] // k.shape[1]
    k, v = k.repeat_interleave(group, 1), v.repeat_interleave(group, 1)
    i = torch.arange(q.shape[-2])[:, None]
    j = torch.arange(k.shape[-2])[None, :]
    s = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    s = s.masked_fill((j > i) | (i - j >= reach) & (j >= 37), float("-inf"))
    return torch.softmax(s, -1) @ v
)";

TEST(Edges, NumbersOfAText) {
    const auto spec = parsed(kWindow);
    ASSERT_NE(spec, nullptr);
    const auto numbers = numbers_of(*spec);
    for (const std::int64_t n : {37, 700})
        EXPECT_NE(std::find_if(numbers.begin(), numbers.end(), [&](auto x) { return std::abs(x - n) <= 1; }),
                  numbers.end())
            << n;
}

TEST(Edges, EveryEdgeOfTilesAndNumbers) {
    const auto spec = parsed(kWindow);
    ASSERT_NE(spec, nullptr);
    ir::Request request = request_for("sm_90a", 128);
    request.group = 2;
    const Tiles tiles{128, 96, 3};
    const auto cases = cases_around(*spec, request, tiles, 11);
    std::set<std::int64_t> rows, keys, requests;
    std::set<Contents> contents;
    std::set<Lay> lays;
    bool many = false, none = false, own = false;
    int small = 0;
    for (const Case& c : cases) {
        EXPECT_TRUE(fits(*spec, c, request));
        EXPECT_EQ(c.Hq, 2 * c.Hk);
        EXPECT_EQ(c.number, &c - cases.data() + 1);
        rows.insert(c.Sq), keys.insert(c.Sk), requests.insert(c.B);
        contents.insert(c.contents), lays.insert(c.q);
        small += c.small() ? 1 : 0;
        many = many || (c.processors > 0 && c.B * c.Hq * ((c.Sq + 127) / 128) >= 3 * c.processors);
        EXPECT_LE(c.B * (c.Hq * c.Sq + 2 * c.Hk * c.Sk), c.Sk > 8192 ? 17000 : 8192) << c.text({request, true});
        own = own || !c.kv_len.empty();
        none = none || std::count(c.kv_len.begin(), c.kv_len.end(), 0) > 0;
    }
    for (const std::int64_t n : {1, 127, 128, 129, 257}) EXPECT_TRUE(rows.contains(n)) << n;
    for (const std::int64_t n : {1, 95, 96, 97, 287, 288, 289, 577, 701, 8241}) EXPECT_TRUE(keys.contains(n)) << n;
    EXPECT_EQ(contents.size(), static_cast<std::size_t>(Contents::Count));
    EXPECT_EQ(lays.size(), static_cast<std::size_t>(Lay::Count));
    EXPECT_TRUE(many && own && none);
    EXPECT_GE(small, 4);
    EXPECT_LE(cases.size(), 32u);
    const auto again = cases_around(*spec, request, tiles, 11);
    ASSERT_EQ(again.size(), cases.size());
    for (std::size_t k = 0; k < cases.size(); ++k)
        EXPECT_EQ(again[k].text({request, true}), cases[k].text({request, true}));
}

/// With the same numbers, keys at boundaries are four times as large, or all grow towards one end.
TEST(Edges, KeysThatStandOut) {
    const auto spec = parsed(kWindow);
    ASSERT_NE(spec, nullptr);
    const Unit unit{request_for("sm_90a", 64), true};
    Case c;
    c.number = 2;
    c.Sq = 3;
    c.Sk = 1000;
    const auto keys = [&](Contents contents) {
        c.contents = contents;
        return draw_inputs(*spec, unit, c, 9).at(1)->values;
    };
    const auto normal = keys(Contents::Normal), needles = keys(Contents::Needles), sloped = keys(Contents::Sloped);
    std::set<std::size_t> stand_out;
    for (std::size_t row = 0; row < 1000; ++row) {
        const double at = normal[row * 64];
        if (needles[row * 64] == 4 * at) stand_out.insert(row);
        EXPECT_NEAR(sloped[row * 64], 8 * static_cast<double>(row) / 1000 * at, std::abs(at) * 0.05) << row;
    }
    // Both ends; the window of 700 of rows 0, 1, 2 and, at the end of the keys, 997 to 999; the sinks of 37.
    for (const std::size_t row : {0U, 1U, 2U, 36U, 37U, 297U, 298U, 299U, 700U, 701U, 996U, 998U, 999U})
        EXPECT_TRUE(stand_out.contains(row)) << row;
    EXPECT_LT(stand_out.size(), 80u);
}

/// A text that wants as many queries as keys, and heads of its own number.
TEST(Edges, OnlyWhatTheTextAllows) {
    const auto spec = parsed(R"(
import torch
def attention(q, k, v):
    B, H, S, D = q.shape
    slope = torch.exp2(-torch.arange(1, H + 1) * 8.0 / H)
    i = torch.arange(S)
    s = q @ k.transpose(-2, -1) * D ** -0.5 - slope[None, :, None, None] * (i[:, None] - i[None, :]).abs()
    return torch.softmax(s, -1) @ v
)");
    ASSERT_NE(spec, nullptr);
    const ir::Request request = request_for("sm_90a", 64);
    const auto cases = cases_around(*spec, request, {128, 128, 2}, 3);
    EXPECT_GE(cases.size(), 10u);
    for (const Case& c : cases) EXPECT_EQ(c.Sq, c.Sk);
}

/// Pairs of heads: one KV head is none.
TEST(Edges, HeadsThatTheTextAllows) {
    const auto spec = parsed(R"(
import torch
def attention(q, k, v):
    B, H2, Sq, D = q.shape
    H, Sk = H2 // 2, k.shape[2]
    s = torch.einsum("bhqd,bhkd->bhqk", q.float(), k.float()) * D ** -0.5
    p = torch.softmax(s, dim=-1).view(B, H, 2, Sq, Sk)
    return torch.einsum("bhqk,bhkd->bhqd", p[:, :, 0] - 0.5 * p[:, :, 1], v.float())
)");
    ASSERT_NE(spec, nullptr);
    const auto cases = cases_around(*spec, request_for("sm_90a", 64), {128, 128, 2}, 0);
    EXPECT_GE(cases.size(), 10u);
    for (const Case& c : cases) EXPECT_EQ(c.Hq % 2, 0);
}

} // namespace
} // namespace cubridge::runtime
