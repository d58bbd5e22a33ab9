// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/dtype.h"
#include <gtest/gtest.h>

namespace cubridge::ir {
namespace {

constexpr DType kAll[] = {DType::Bool, DType::U8,   DType::I8,  DType::I16,  DType::I32, DType::I64,
                          DType::E4M3, DType::E5M2, DType::F16, DType::BF16, DType::F32, DType::F64};

TEST(DTypeTest, NamesGoBothWays) {
    for (const DType t : kAll) {
        EXPECT_EQ(dtype_from_torch(torch_name(t)), t);
        EXPECT_EQ(dtype_from_short(short_name(t)), t);
    }
    EXPECT_STREQ(torch_name(DType::E4M3), "float8_e4m3fn");
    EXPECT_STREQ(short_name(DType::BF16), "bf16");
}

TEST(DTypeTest, TakesTorchsAliases) {
    EXPECT_EQ(dtype_from_torch("float"), DType::F32);
    EXPECT_EQ(dtype_from_torch("double"), DType::F64);
    EXPECT_EQ(dtype_from_torch("half"), DType::F16);
    EXPECT_EQ(dtype_from_torch("long"), DType::I64);
    EXPECT_EQ(dtype_from_torch("int"), DType::I32);
    EXPECT_EQ(dtype_from_torch("short"), DType::I16);
    EXPECT_EQ(dtype_from_torch(""), std::nullopt);
    EXPECT_EQ(dtype_from_torch("torch.float32"), std::nullopt);
    EXPECT_EQ(dtype_from_short("float32"), std::nullopt);
}

TEST(DTypeTest, Sizes) {
    EXPECT_EQ(size_in_bytes(DType::Bool), 1);
    EXPECT_EQ(size_in_bytes(DType::E5M2), 1);
    EXPECT_EQ(size_in_bytes(DType::BF16), 2);
    EXPECT_EQ(size_in_bytes(DType::F32), 4);
    EXPECT_EQ(size_in_bytes(DType::I64), 8);
}

TEST(DTypeTest, PromotionIsThatOfPromoteTypes) {
    EXPECT_EQ(promote(DType::Bool, DType::U8), DType::U8);
    EXPECT_EQ(promote(DType::U8, DType::I8), DType::I16);
    EXPECT_EQ(promote(DType::I8, DType::U8), DType::I16);
    EXPECT_EQ(promote(DType::U8, DType::I16), DType::I16);
    EXPECT_EQ(promote(DType::I32, DType::I64), DType::I64);
    EXPECT_EQ(promote(DType::I64, DType::F16), DType::F16);
    EXPECT_EQ(promote(DType::F16, DType::BF16), DType::F32);
    EXPECT_EQ(promote(DType::BF16, DType::F32), DType::F32);
    EXPECT_EQ(promote(DType::F64, DType::F16), DType::F64);
    EXPECT_EQ(promote(DType::Bool, DType::BF16), DType::BF16);
}

TEST(DTypeTest, PromotionIsCommutativeIdempotentAndNeverLowersACategory) {
    for (const DType a : kAll) {
        EXPECT_EQ(promote(a, a), a);
        for (const DType b : kAll) {
            EXPECT_EQ(promote(a, b), promote(b, a));
            EXPECT_EQ(is_float(promote(a, b)), is_float(a) || is_float(b));
            EXPECT_EQ(promote(promote(a, b), b), promote(a, b));
        }
    }
}

} // namespace
} // namespace cubridge::ir
