// Medians, spreads and the comparison of outputs. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/rounding.h"
#include "runtime/tune/inputs.h"
#include "runtime/tune/timing.h"
#include "tests/unit/runtime/support.h"
#include <algorithm>
#include <cmath>
#include <gtest/gtest.h>

namespace cubridge::runtime {
namespace {

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

} // namespace
} // namespace cubridge::runtime
