// SPDX-License-Identifier: Apache-2.0
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

TEST(ReduceTest, OverEachSetOfDims) {
    const Tensor t = counting({2, 3});
    expect(reduce(ReduceOp::Sum, t, {}, false), DType::I64, {}, {15});
    expect(reduce(ReduceOp::Sum, t, {}, true), DType::I64, {1, 1}, {15});
    expect(reduce(ReduceOp::Sum, t, {0}, false), DType::I64, {3}, {3, 5, 7});
    expect(reduce(ReduceOp::Sum, t, {-1}, true), DType::I64, {2, 1}, {3, 12});
    expect(reduce(ReduceOp::Sum, t, {1, 0}, false), DType::I64, {}, {15});
    expect(reduce(ReduceOp::Prod, t, {0}, false), DType::I64, {3}, {0, 4, 10});
    expect(reduce(ReduceOp::Max, t, {0}, false), DType::I64, {3}, {3, 4, 5});
    expect(reduce(ReduceOp::Min, t, {1}, false), DType::I64, {2}, {0, 3});
    expect(reduce(ReduceOp::Sum, counting({2, 2, 2}), {0, 2}, false), DType::I64, {2}, {10, 18});
    expect(reduce(ReduceOp::Sum, ints({}, {4}), {0}, false), DType::I64, {}, {4});
    expect(reduce(ReduceOp::Max, ints({}, {4}), {-1}, true), DType::I64, {}, {4});
    EXPECT_FAILURE("index", reduce(ReduceOp::Sum, t, {2}, false));
    EXPECT_FAILURE("shape", reduce(ReduceOp::Sum, t, {0, -2}, false));
}

TEST(ReduceTest, Dtypes) {
    const Tensor b = bools({3}, {1, 0, 1}), narrow = from_values({2}, {200, 100}, DType::U8, false);
    expect(reduce(ReduceOp::Sum, b, {}, false), DType::I64, {}, {2});
    expect(reduce(ReduceOp::Sum, narrow, {}, false), DType::I64, {}, {300});
    expect(reduce(ReduceOp::Max, narrow, {}, false), DType::U8, {}, {200});
    expect(reduce(ReduceOp::Max, b, {}, false), DType::Bool, {}, {1});
    expect(reduce(ReduceOp::Any, floats({2}, {0, kNaN}), {}, false), DType::Bool, {}, {1});
    expect(reduce(ReduceOp::All, ints({2, 2}, {1, 0, 2, 3}), {1}, false), DType::Bool, {2}, {0, 1});
    expect(reduce(ReduceOp::Sum, full({2}, 0.5, DType::BF16, false), {}, false), DType::BF16, {}, {1});
    EXPECT_FAILURE("limit", reduce(ReduceOp::Prod, ints({2}, {4294967296.0, 4294967296.0}), {}, false));
}

TEST(ReduceTest, OverNothing) {
    const Tensor t = floats({2, 0}, {});
    expect(reduce(ReduceOp::Sum, t, {1}, false), DType::F32, {2}, {0, 0});
    expect(reduce(ReduceOp::Prod, t, {1}, true), DType::F32, {2, 1}, {1, 1});
    expect(reduce(ReduceOp::Any, t, {1}, false), DType::Bool, {2}, {0, 0});
    expect(reduce(ReduceOp::All, t, {1}, false), DType::Bool, {2}, {1, 1});
    expect(reduce(ReduceOp::Max, t, {0}, false), DType::F32, {0}, {});
    EXPECT_EQ(failure([&] { return reduce(ReduceOp::Max, t, {1}, false); }),
              "shape: max over an axis of size 0 of a tensor of shape [2, 0]");
    EXPECT_FAILURE("shape", reduce(ReduceOp::Min, t, {}, false));
}

TEST(ReduceTest, NaNWins) {
    const Tensor t = floats({4, 2}, {kNaN, 1, 1, kNaN, -kInf, -kInf, kInf, 2});
    expect(reduce(ReduceOp::Max, t, {1}, false), DType::F32, {4}, {kNaN, kNaN, -kInf, kInf});
    expect(reduce(ReduceOp::Min, t, {1}, false), DType::F32, {4}, {kNaN, kNaN, -kInf, 2});
    expect(reduce(ReduceOp::Sum, t, {1}, false), DType::F32, {4}, {kNaN, kNaN, -kInf, kInf});
}

TEST(ReduceTest, PinsAreReducedFromPins) {
    const Tensor t = pinned({3}, {0.1, 0.2, 0.3});
    const Tensor sum = reduce(ReduceOp::Sum, t, {}, false);
    EXPECT_EQ((*sum.pin)[0], static_cast<float>(double{0.1f} + double{0.2f} + double{0.3f}));
    EXPECT_NEAR((*sum.data)[0], 0.6, 1e-15);
    EXPECT_EQ((*reduce(ReduceOp::Max, t, {}, false).pin)[0], 0.3f);
    EXPECT_EQ((*reduce(ReduceOp::Min, t, {}, false).pin)[0], 0.1f);
    EXPECT_FALSE(reduce(ReduceOp::Sum, floats({1}, {1}), {}, false).pin);
    EXPECT_FALSE(reduce(ReduceOp::Any, t, {}, false).pin);
    EXPECT_EQ((*cumsum(t, 0).pin)[1], static_cast<float>(double{0.1f} + double{0.2f}));
}

TEST(ReduceTest, Cumsum) {
    expect(cumsum(counting({2, 3}), 1), DType::I64, {2, 3}, {0, 1, 3, 3, 7, 12});
    expect(cumsum(counting({2, 3}), -2), DType::I64, {2, 3}, {0, 1, 2, 3, 5, 7});
    expect(cumsum(counting({2, 2, 2}), 1), DType::I64, {2, 2, 2}, {0, 1, 2, 4, 4, 5, 10, 12});
    expect(cumsum(bools({3}, {1, 1, 0}), 0), DType::I64, {3}, {1, 2, 2});
    expect(cumsum(floats({3}, {1, kNaN, 1}), 0), DType::F32, {3}, {1, kNaN, kNaN});
    expect(cumsum(ints({}, {4}), 0), DType::I64, {}, {4});
    expect(cumsum(floats({2, 0}, {}), 1), DType::F32, {2, 0}, {});
    expect(cumsum(floats({0, 2}, {}), 1), DType::F32, {0, 2}, {});
    EXPECT_FAILURE("index", cumsum(counting({2}), 1));
}

} // namespace
} // namespace cubridge::ir::tensor
