// SPDX-License-Identifier: Apache-2.0
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

TEST(SortTest, ArgsortIsStable) {
    const Tensor t = ints({6}, {2, 1, 2, 1, 0, 2});
    expect(argsort(t, 0, false), DType::I64, {6}, {4, 1, 3, 0, 2, 5});
    expect(argsort(t, 0, true), DType::I64, {6}, {0, 2, 5, 1, 3, 4});
    expect(argsort(bools({3}, {1, 0, 1}), 0, true), DType::I64, {3}, {0, 2, 1});
}

TEST(SortTest, NaNIsLargest) {
    const Tensor t = floats({5}, {kNaN, kInf, -kInf, kNaN, 0});
    expect(argsort(t, 0, false), DType::I64, {5}, {2, 4, 1, 0, 3});
    expect(argsort(t, 0, true), DType::I64, {5}, {0, 3, 1, 4, 2});
    expect(argmax(t, 0, false), DType::I64, {}, {0});
    expect(argmax(floats({3}, {1, kInf, kNaN}), 0, false), DType::I64, {}, {2});
}

TEST(SortTest, AlongEachDim) {
    const Tensor t = ints({2, 3}, {3, 1, 2, 0, 5, 4});
    expect(argsort(t, 1, false), DType::I64, {2, 3}, {1, 2, 0, 0, 2, 1});
    expect(argsort(t, 0, false), DType::I64, {2, 3}, {1, 0, 0, 0, 1, 1});
    expect(argmax(t, -1, false), DType::I64, {2}, {0, 1});
    expect(argmax(t, 0, true), DType::I64, {1, 3}, {0, 1, 1});
    expect(argmax(ints({3}, {1, 7, 7}), 0, false), DType::I64, {}, {1});
}

TEST(SortTest, OfLittle) {
    expect(argsort(ints({}, {4}), 0, false), DType::I64, {}, {0});
    expect(argmax(ints({}, {4}), 0, true), DType::I64, {}, {0});
    expect(argsort(floats({2, 0}, {}), 1, false), DType::I64, {2, 0}, {});
    expect(argsort(floats({0, 2}, {}), 1, false), DType::I64, {0, 2}, {});
    expect(argmax(floats({0, 2}, {}), 1, false), DType::I64, {0}, {});
    EXPECT_FAILURE("shape", argmax(floats({2, 0}, {}), 1, false));
    EXPECT_FAILURE("index", argsort(counting({2}), 1, false));
}

TEST(SortTest, ReadsThePin) {
    // Equal in float32: the first wins there.
    expect(argmax(pinned({2}, {1, 1 + 1e-12}), 0, false), DType::I64, {}, {0});
    expect(argmax(floats({2}, {1, 1 + 1e-12}), 0, false), DType::I64, {}, {1});
    expect(argsort(pinned({2}, {1 + 1e-12, 1}), 0, false), DType::I64, {2}, {0, 1});
}

} // namespace
} // namespace cubridge::ir::tensor
