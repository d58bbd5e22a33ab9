// SPDX-License-Identifier: Apache-2.0
#include "runtime/check/rounding.h"
#include <array>
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

using cubridge::ir::DType;
using namespace cubridge::runtime;

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

TEST(Rounding, NearestTiesToEven) {
    EXPECT_EQ(rounded(1 + 0x1p-11, DType::F16), 1);
    EXPECT_EQ(rounded(1 + 3 * 0x1p-11, DType::F16), 1 + 0x1p-9);
    EXPECT_EQ(rounded(1 + 0x1p-8, DType::BF16), 1);
    EXPECT_EQ(rounded(1 + 0x1.8p-8, DType::BF16), 1 + 0x1p-7);
    EXPECT_EQ(rounded(0.1, DType::F32), static_cast<double>(0.1F));
    EXPECT_EQ(rounded(65519, DType::F16), 65504);
    EXPECT_EQ(rounded(65520, DType::F16), kInfinity);
    EXPECT_EQ(rounded(-1e39, DType::BF16), -kInfinity);
    EXPECT_EQ(rounded(0x1p-25, DType::F16), 0);
    EXPECT_EQ(rounded(0x1.8p-25, DType::F16), 0x1p-24);
    EXPECT_EQ(rounded(448, DType::E4M3), 448);
    EXPECT_EQ(rounded(17.5, DType::I32), 17);
}

// Every bit pattern of the small types that is a number comes back from its value.
TEST(Rounding, BitsAndValuesAgree) {
    for (const DType t : {DType::F16, DType::BF16, DType::E4M3, DType::E5M2}) {
        const int bytes = cubridge::ir::size_in_bytes(t);
        for (unsigned bits = 0; bits < (bytes == 1 ? 256U : 65536U); ++bits) {
            const std::array<std::byte, 2> memory = {static_cast<std::byte>(bits & 255U),
                                                     static_cast<std::byte>(bits >> 8U)};
            const double v = decode(memory.data(), t);
            if (std::isnan(v)) continue;
            EXPECT_EQ(rounded(v, t), v) << cubridge::ir::short_name(t) << " " << bits;
            std::array<std::byte, 2> again{};
            encode(v, t, again.data());
            EXPECT_EQ(again[0], memory[0]) << cubridge::ir::short_name(t) << " " << bits;
            EXPECT_TRUE(bytes == 1 || again[1] == memory[1]) << cubridge::ir::short_name(t) << " " << bits;
        }
    }
}

TEST(Rounding, NaNStaysNaN) {
    for (const DType t : {DType::F16, DType::BF16, DType::E4M3, DType::E5M2, DType::F32, DType::F64}) {
        std::array<std::byte, 8> memory{};
        encode(std::nan(""), t, memory.data());
        EXPECT_TRUE(std::isnan(decode(memory.data(), t))) << cubridge::ir::short_name(t);
    }
}

TEST(Rounding, Ulp) {
    EXPECT_EQ(ulp(1, DType::F16), 0x1p-10);
    EXPECT_EQ(ulp(-3, DType::BF16), 0x1p-6);
    EXPECT_EQ(ulp(0, DType::F16), 0x1p-24);
    EXPECT_EQ(ulp(1.5, DType::F32), 0x1p-23);
    EXPECT_EQ(ulp(5, DType::I32), 0);
}

} // namespace
