// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/expr.h"
#include "ir/mask/interval.h"
#include <algorithm>
#include <gtest/gtest.h>

namespace {

using cubridge::ir::floor_div;
using cubridge::ir::floor_mod;
using namespace cubridge::ir::mask;

constexpr std::int64_t kBelow = Interval::kBelow, kAbove = Interval::kAbove;

// Every operator on all intervals within -4..4: sound, and exact where corners decide.
TEST(IntervalTest, HoldsAllValues) {
    struct Operator {
        Interval (*of)(const Interval&, const Interval&);
        std::int64_t (*value)(std::int64_t, std::int64_t);
        bool exact;
    };
    const Operator operators[] = {
        {add, [](std::int64_t a, std::int64_t b) { return a + b; }, true},
        {multiply, [](std::int64_t a, std::int64_t b) { return a * b; }, true},
        {least, [](std::int64_t a, std::int64_t b) { return std::min(a, b); }, true},
        {greatest, [](std::int64_t a, std::int64_t b) { return std::max(a, b); }, true},
        {floor_divide, floor_div, false},
        {modulo, floor_mod, false},
        {[](const Interval& a, const Interval&) { return power(a, 2); },
         [](std::int64_t a, std::int64_t) { return a * a; }, false},
        {[](const Interval& a, const Interval&) { return power(a, 3); },
         [](std::int64_t a, std::int64_t) { return a * a * a; }, false},
    };
    std::vector<Interval> all;
    for (std::int64_t low = -4; low <= 4; ++low)
        for (std::int64_t high = low; high <= 4; ++high) all.push_back({low, high});
    for (const Operator& o : operators)
        for (const Interval& a : all)
            for (const Interval& b : all) {
                std::int64_t low = INT64_MAX, high = INT64_MIN;
                for (auto x = a.low; x <= a.high; ++x)
                    for (auto y = b.low; y <= b.high; ++y) {
                        low = std::min(low, o.value(x, y));
                        high = std::max(high, o.value(x, y));
                    }
                const Interval r = o.of(a, b);
                ASSERT_LE(r.low, low);
                ASSERT_GE(r.high, high);
                if (!o.exact && !b.single()) continue;
                ASSERT_EQ(r, (Interval{low, high}))
                    << a.low << ":" << a.high << " " << b.low << ":" << b.high << " " << &o - operators;
            }
}

TEST(IntervalTest, Saturates) {
    const std::int64_t big = std::int64_t{1} << 61;
    const Interval large{big, big}, unknown{};
    EXPECT_EQ(add(add(large, large), large).high, kAbove);
    EXPECT_GE(add(add(large, large), large).low, 2 * big);
    EXPECT_EQ(multiply(large, {-8, 8}), unknown);
    EXPECT_EQ(multiply(unknown, one(0)), one(0));
    EXPECT_EQ(multiply({0, kAbove}, one(-1)), (Interval{kBelow, 0}));
    EXPECT_EQ(add({0, kAbove}, {-5, 5}), (Interval{-5, kAbove}));
    EXPECT_EQ(floor_divide({kBelow, 7}, one(4)), (Interval{kBelow, 1}));
    EXPECT_EQ(modulo(unknown, one(4)), (Interval{0, 3}));
    EXPECT_EQ(power({kBelow, 3}, 2), (Interval{0, kAbove}));
    EXPECT_EQ(power({2, 3}, 1000).high, kAbove);
    EXPECT_EQ(one(kBelow).low, kBelow);
}

} // namespace
