// SPDX-License-Identifier: Apache-2.0
#include "ir/tensor/promotion.h"
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

Tensor dims(DType t) {
    return full({2}, 1, t, false);
}
Tensor point(DType t) {
    return full({}, 1, t, false);
}
Tensor integer() {
    return number(1, DType::I64);
}
Tensor real() {
    return number(1.5, DType::F64);
}
Tensor truth() {
    return number(1, DType::Bool);
}

DType of(const Tensor& a, const Tensor& b) {
    const Tensor pair[] = {a, b}, swapped[] = {b, a};
    EXPECT_EQ(result_type(pair), result_type(swapped));
    return result_type(pair);
}

TEST(PromotionTest, IsThatOfResultType) {
    EXPECT_EQ(of(dims(DType::F16), dims(DType::F32)), DType::F32);
    EXPECT_EQ(of(dims(DType::F16), point(DType::F32)), DType::F16);
    EXPECT_EQ(of(dims(DType::F32), point(DType::F64)), DType::F32);
    EXPECT_EQ(of(point(DType::F32), point(DType::F64)), DType::F64);
    EXPECT_EQ(of(dims(DType::I32), point(DType::I64)), DType::I32);
    EXPECT_EQ(of(dims(DType::I32), dims(DType::I64)), DType::I64);
    EXPECT_EQ(of(dims(DType::I64), point(DType::F16)), DType::F16);
    EXPECT_EQ(of(dims(DType::Bool), point(DType::I32)), DType::I32);
    EXPECT_EQ(of(dims(DType::I64), real()), DType::F32);
    EXPECT_EQ(of(dims(DType::Bool), real()), DType::F32);
    EXPECT_EQ(of(dims(DType::Bool), integer()), DType::I64);
    EXPECT_EQ(of(dims(DType::U8), integer()), DType::U8);
    EXPECT_EQ(of(dims(DType::BF16), real()), DType::BF16);
    EXPECT_EQ(of(dims(DType::F64), real()), DType::F64);
    EXPECT_EQ(of(point(DType::F64), real()), DType::F64);
    EXPECT_EQ(of(point(DType::I32), real()), DType::F32);
    EXPECT_EQ(of(dims(DType::I32), truth()), DType::I32);
    EXPECT_EQ(of(truth(), truth()), DType::Bool);
    EXPECT_EQ(of(real(), integer()), DType::F32);
}

TEST(PromotionTest, PinsComeFromPinsIntegersAndNumbers) {
    EXPECT_TRUE(pinnable(dims(DType::I64)));
    EXPECT_TRUE(pinnable(dims(DType::Bool)));
    EXPECT_TRUE(pinnable(real()));
    EXPECT_TRUE(pinnable(full({2}, 1, DType::F32, true)));
    EXPECT_FALSE(pinnable(dims(DType::F32)));
    EXPECT_FALSE(pinnable(dims(DType::F64)));
}

TEST(PromotionTest, Int64EndsWhereDoublesDo) {
    EXPECT_EQ(fit(kMaxInteger, DType::I64), 9007199254740992.0);
    EXPECT_FAILURE("limit", fit(kMaxInteger + 1, DType::I64));
    EXPECT_FAILURE("limit", fit(-kMaxInteger - 1, DType::I64));
    EXPECT_EQ(fit(kMaxInteger + 1, DType::I32), 1);
    EXPECT_EQ(fit(2, DType::Bool), 1);
    EXPECT_EQ(truncated(-2.9), -2);
}

} // namespace
} // namespace cubridge::ir::tensor
