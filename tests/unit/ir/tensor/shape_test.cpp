// SPDX-License-Identifier: Apache-2.0
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

TEST(ShapeTest, Reshape) {
    expect(reshape(counting({6}), {2, -1}), DType::I64, {2, 3}, {0, 1, 2, 3, 4, 5});
    expect(reshape(counting({1, 1}), {}), DType::I64, {}, {0});
    expect(reshape(counting({0, 3}), {3, 0}), DType::I64, {3, 0}, {});
    expect(reshape(counting({0, 3}), {-1, 3}), DType::I64, {0, 3}, {});
    const Tensor t = pinned({2}, {1, 2});
    EXPECT_EQ(reshape(t, {2, 1}).data, t.data);
    EXPECT_EQ(reshape(t, {2, 1}).pin, t.pin);
    EXPECT_EQ(failure([] {
                  return reshape(counting({6}), {4, -1});
              }),
              "shape: a tensor of shape [6] can't be reshaped to [4, -1]");
    EXPECT_FAILURE("shape", reshape(counting({6}), {-1, -1}));
    EXPECT_FAILURE("shape", reshape(counting({6}), {5}));
    EXPECT_FAILURE("shape", reshape(counting({6}), {-2, -3}));
    EXPECT_FAILURE("shape", reshape(counting({0}), {-1, 0}));
}

TEST(ShapeTest, Permute) {
    expect(permute(counting({2, 3}), {1, 0}), DType::I64, {3, 2}, {0, 3, 1, 4, 2, 5});
    expect(permute(counting({2, 1, 3}), {-1, 0, 1}), DType::I64, {3, 2, 1}, {0, 3, 1, 4, 2, 5});
    expect(permute(counting({}), {}), DType::I64, {}, {0});
    expect(permute(counting({2, 2, 2}), {2, 1, 0}), DType::I64, {2, 2, 2}, {0, 4, 2, 6, 1, 5, 3, 7});
    const Tensor t = permute(pinned({1, 2}, {0.1, 0.2}), {1, 0});
    EXPECT_EQ((*t.pin)[1], 0.2f);
    EXPECT_FAILURE("shape", permute(counting({2, 3}), {0}));
    EXPECT_FAILURE("shape", permute(counting({2, 3}), {0, -2}));
    EXPECT_FAILURE("index", permute(counting({2, 3}), {0, 2}));
}

TEST(ShapeTest, Expand) {
    expect(expand(counting({2, 1}), {3, -1, 2}), DType::I64, {3, 2, 2}, {0, 0, 1, 1, 0, 0, 1, 1, 0, 0, 1, 1});
    expect(expand(counting({}), {2}), DType::I64, {2}, {0, 0});
    expect(expand(counting({1}), {0}), DType::I64, {0}, {});
    EXPECT_FAILURE("shape", expand(counting({2}), {3}));
    EXPECT_FAILURE("shape", expand(counting({2, 2}), {2}));
    EXPECT_FAILURE("shape", expand(counting({2}), {-1, 2}));
    EXPECT_FAILURE("limit", expand(counting({1}), {kMaxElements + 1}));
}

TEST(ShapeTest, SliceClipsAsPythonDoes) {
    const Tensor t = counting({5});
    expect(slice(t, 0, 1, 4, 1), DType::I64, {3}, {1, 2, 3});
    expect(slice(t, 0, -2, kEnd, 1), DType::I64, {2}, {3, 4});
    expect(slice(t, 0, -100, 100, 2), DType::I64, {3}, {0, 2, 4});
    expect(slice(t, -1, 3, 1, 1), DType::I64, {0}, {});
    expect(slice(t, 0, 1, kEnd, kEnd), DType::I64, {1}, {1});
    expect(slice(counting({2, 3}), 1, 0, 2, 1), DType::I64, {2, 2}, {0, 1, 3, 4});
    expect(slice(counting({2, 3}), 0, 1, 2, 1), DType::I64, {1, 3}, {3, 4, 5});
    EXPECT_FAILURE("index", slice(t, 0, 0, 5, 0));
    EXPECT_FAILURE("index", slice(t, 0, 0, 5, -1));
    EXPECT_FAILURE("index", slice(t, 1, 0, 5, 1));
    EXPECT_FAILURE("index", slice(counting({}), 0, 0, 1, 1));
}

TEST(ShapeTest, SelectAndFlip) {
    expect(select(counting({2, 3}), 1, -1), DType::I64, {2}, {2, 5});
    expect(select(counting({2, 3}), 0, 1), DType::I64, {3}, {3, 4, 5});
    expect(select(counting({2}), 0, 0), DType::I64, {}, {0});
    EXPECT_EQ(failure([] {
                  return select(counting({2, 3}), 1, 3);
              }),
              "index: index 3 is out of range for dim 1 of shape [2, 3]");
    EXPECT_FAILURE("index", select(counting({2, 3}), 1, -4));
    expect(flip(counting({2, 3}), -1), DType::I64, {2, 3}, {2, 1, 0, 5, 4, 3});
    expect(flip(counting({2, 3}), 0), DType::I64, {2, 3}, {3, 4, 5, 0, 1, 2});
    expect(flip(counting({0}), 0), DType::I64, {0}, {});
}

TEST(ShapeTest, Concat) {
    expect(concat({counting({2, 1}), counting({2, 2})}, 1), DType::I64, {2, 3}, {0, 0, 1, 1, 2, 3});
    expect(concat({counting({1, 2}), counting({2, 2})}, -2), DType::I64, {3, 2}, {0, 1, 0, 1, 2, 3});
    expect(concat({counting({0}), counting({1, 2})}, 1), DType::I64, {1, 2}, {0, 1});
    expect(concat({counting({0}), counting({0})}, 0), DType::I64, {0}, {});
    expect(concat({counting({2, 0}), counting({2, 1})}, 1), DType::I64, {2, 1}, {0, 1});
    const Tensor t = concat({pinned({1}, {0.1}), ints({1}, {2})}, 0);
    expect(t, DType::F32, {2}, {0.1, 2});
    EXPECT_EQ((*t.pin)[0], 0.1f);
    EXPECT_FALSE(concat({pinned({1}, {0.1}), floats({1}, {2})}, 0).pin);
    EXPECT_FALSE(concat({pinned({1}, {0.1}), doubles({1}, {2})}, 0).pin);
    EXPECT_FAILURE("shape", concat({}, 0));
    EXPECT_FAILURE("shape", concat({counting({})}, 0));
    EXPECT_FAILURE("shape", concat({counting({2, 1}), counting({3, 1})}, 1));
    EXPECT_FAILURE("shape", concat({counting({2, 1}), counting({2})}, 0));
}

TEST(ShapeTest, RepeatInterleave) {
    expect(repeat_interleave(counting({2, 2}), 2, 0), DType::I64, {4, 2}, {0, 1, 0, 1, 2, 3, 2, 3});
    expect(repeat_interleave(counting({2, 2}), 2, -1), DType::I64, {2, 4}, {0, 0, 1, 1, 2, 2, 3, 3});
    expect(repeat_interleave(counting({2}), 0, 0), DType::I64, {0}, {});
    EXPECT_FAILURE("shape", repeat_interleave(counting({2}), -1, 0));
    EXPECT_FAILURE("limit", repeat_interleave(counting({2}), kMaxElements, 0));
    EXPECT_FAILURE("limit", repeat_interleave(counting({2}), kEnd, 0));
}

} // namespace
} // namespace cubridge::ir::tensor
