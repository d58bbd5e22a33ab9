// SPDX-License-Identifier: Apache-2.0
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

TEST(MakeTest, ShapesMayBeOfRankZeroAndOfSizeZero) {
    expect(full({}, 3, DType::I64, false), DType::I64, {}, {3});
    expect(full({2, 0}, 3, DType::F32, true), DType::F32, {2, 0}, {});
    expect(full({2}, 0.1, DType::F64, true), DType::F64, {2}, {0.1, 0.1});
    expect(arange(1, 2, 3, DType::I64), DType::I64, {3}, {1, 3, 5});
    EXPECT_EQ(full({2, 0, 3}, 0, DType::I64, false).size(), 0);
    EXPECT_EQ(describe(full({2, 3}, 0, DType::F32, false)), "float32 [2, 3]");
    EXPECT_EQ(describe(number(1, DType::I64)), "int64 []");
}

TEST(MakeTest, OnlyFloat32AndNumbersArePinned) {
    EXPECT_EQ(full({1}, 0.1, DType::F32, true).pin->front(), 0.1f);
    EXPECT_FALSE(full({1}, 0.1, DType::F32, false).pin);
    EXPECT_FALSE(full({1}, 0.1, DType::F64, true).pin);
    EXPECT_FALSE(full({1}, 1, DType::I64, true).pin);
    EXPECT_TRUE(number(0.1, DType::F64).pin);
    EXPECT_TRUE(number(0.1, DType::F64).scalar);
    EXPECT_FALSE(number(1, DType::I64).pin);
    EXPECT_TRUE(arange(0, 0.5, 2, DType::F32).pin);
}

TEST(MakeTest, RefusesWhatIsNoTensor) {
    EXPECT_FAILURE("shape", full({2, -1}, 0, DType::F32, false));
    EXPECT_FAILURE("shape", from_values({2, 2}, {1, 2, 3}, DType::F32, false));
    EXPECT_FAILURE("shape", arange(0, 1, -1, DType::I64));
    EXPECT_FAILURE("limit", full({kMaxElements + 1}, 0, DType::F32, false));
    EXPECT_FAILURE("limit", full({std::int64_t{1} << 40, std::int64_t{1} << 40}, 0, DType::F32, false));
    EXPECT_FAILURE("limit", full({0, std::int64_t{1} << 40, std::int64_t{1} << 40}, 0, DType::F32, false));
    EXPECT_EQ(failure([] {
                  return full({1 << 20, 1 << 20}, 0, DType::F32, false);
              }),
              "limit: a tensor of shape [1048576, 1048576] exceeds the limit of 268435456 elements");
}

TEST(MakeTest, CastsToIntegersTruncateThePin) {
    Tensor t = pinned({1}, {2.9999999999});
    EXPECT_EQ((*t.pin)[0], 3.0f);
    expect(cast(t, DType::I64), DType::I64, {1}, {3});
    expect(cast(floats({2}, {2.9999999999, -1.5}), DType::I64), DType::I64, {2}, {2, -1});
    expect(cast(number(2.9999999999, DType::F64), DType::I64), DType::I64, {}, {2});
    // What does not fit is what a CUDA cast to int32 makes of it, and never a Failure.
    expect(cast(floats({4}, {kNaN, kInf, -kInf, 1e300}), DType::I64), DType::I64, {4},
           {0, 2147483647, -2147483648.0, 2147483647});
}

TEST(MakeTest, CastsAmongFloatsRoundNothing) {
    const Tensor t = pinned({1}, {0.1});
    for (const DType to : {DType::F64, DType::F16, DType::BF16}) {
        const Tensor c = cast(t, to);
        EXPECT_EQ((*c.data)[0], 0.1);
        EXPECT_FALSE(c.pin);
    }
    EXPECT_EQ(cast(t, DType::F32).pin, t.pin);
    EXPECT_FALSE(cast(floats({1}, {0.1}), DType::F32).pin);
    EXPECT_FALSE(cast(cast(t, DType::F64), DType::F32).pin);
    EXPECT_EQ((*cast(ints({1}, {16777217}), DType::F32).pin)[0], 16777216.0f);
    EXPECT_EQ((*cast(ints({1}, {16777217}), DType::F32).data)[0], 16777217.0);
}

TEST(MakeTest, NarrowIntegersWrapAndBoolsTest) {
    expect(cast(ints({3}, {256, -1, 130}), DType::U8), DType::U8, {3}, {0, 255, 130});
    expect(cast(ints({3}, {256, -1, 130}), DType::I8), DType::I8, {3}, {0, -1, -126});
    expect(cast(ints({1}, {4294967297.0}), DType::I32), DType::I32, {1}, {1});
    expect(cast(floats({4}, {0, -0.0, 0.5, kNaN}), DType::Bool), DType::Bool, {4}, {0, 0, 1, 1});
}

} // namespace
} // namespace cubridge::ir::tensor
