// SPDX-License-Identifier: Apache-2.0
#include "values.h"

namespace cubridge::ir::tensor {
namespace {

using At = std::vector<std::optional<Tensor>>;

Region position(Tensor t) {
    Region r;
    r.index = std::move(t);
    return r;
}

Region range(std::int64_t start, std::int64_t count, std::int64_t step = 1) {
    Region r;
    r.start = start;
    r.step = step;
    r.count = count;
    return r;
}

/// What gather gives for x[...] of `counting(shape)`, by its definition on positions.
TEST(IndexTest, GatherOfOneAxis) {
    const Tensor t = counting({2, 3});
    expect(gather(t, At{ints({2}, {1, -1})}), DType::I64, {2, 3}, {3, 4, 5, 3, 4, 5});
    expect(gather(t, At{std::nullopt, ints({2}, {2, 0})}), DType::I64, {2, 2}, {2, 0, 5, 3});
    expect(gather(t, At{std::nullopt, ints({1, 2}, {-3, 1})}), DType::I64, {2, 1, 2}, {0, 1, 3, 4});
    expect(gather(t, At{ints({}, {1})}), DType::I64, {3}, {3, 4, 5});
    expect(gather(t, At{ints({0}, {})}), DType::I64, {0, 3}, {});
    expect(gather(t, At{}), DType::I64, {2, 3}, {0, 1, 2, 3, 4, 5});
    EXPECT_EQ((*gather(pinned({2}, {0.1, 0.2}), At{ints({1}, {1})}).pin)[0], 0.2f);
    EXPECT_TRUE(gather(t, At{from_values({1}, {1}, DType::I32, false)}).size() == 3);
}

TEST(IndexTest, NeighbouringIndicesStayInPlace) {
    const Tensor t = counting({2, 3, 4, 5});
    const Tensor g = gather(t, At{std::nullopt, ints({2, 1}, {0, 2}), ints({3}, {1, 3, -4})});
    ASSERT_EQ(g.shape, (Shape{2, 2, 3, 5}));
    const int a[] = {0, 2}, b[] = {1, 3, 0};
    std::size_t k = 0;
    for (int i = 0; i < 2; ++i)
        for (const int y : a)
            for (const int z : b)
                for (int l = 0; l < 5; ++l) EXPECT_EQ((*g.data)[k++], ((i * 3 + y) * 4 + z) * 5 + l);
}

TEST(IndexTest, SeparatedIndicesComeFirst) {
    const Tensor t = counting({2, 3, 4});
    const Tensor g = gather(t, At{ints({2}, {1, 0}), std::nullopt, ints({2}, {3, 1})});
    expect(g, DType::I64, {2, 3}, {15, 19, 23, 1, 5, 9});
    // A 0-d index takes its axis away first, so that the others are neighbours.
    const Tensor h = gather(counting({2, 2, 3, 2}), At{std::nullopt, ints({1}, {1}), ints({}, {2}), ints({1}, {0})});
    expect(h, DType::I64, {2, 1}, {10, 22});
    // ... and does not count as separated from them: x[0-d, :, index] is x.select(0, ..)[:, index].
    const Tensor i = gather(counting({2, 2, 3}), At{ints({}, {1}), std::nullopt, ints({2}, {2, 0})});
    expect(i, DType::I64, {2, 2}, {8, 6, 11, 9});
}

TEST(IndexTest, GatherRefuses) {
    const Tensor t = counting({2, 3});
    EXPECT_EQ(failure([&] {
                  return gather(t, At{std::nullopt, ints({1}, {3})});
              }),
              "index: index 3 is out of range for dim 1 of shape [2, 3]");
    EXPECT_FAILURE("index", gather(t, At{ints({1}, {-3})}));
    EXPECT_FAILURE("index", gather(counting({0, 3}), At{ints({1}, {0})}));
    EXPECT_FAILURE("type", gather(t, At{bools({2}, {1, 0})}));
    EXPECT_FAILURE("type", gather(t, At{floats({2}, {1, 0})}));
    EXPECT_FAILURE("shape", gather(t, At{ints({2}, {0, 1}), ints({3}, {0, 1, 2})}));
    EXPECT_FAILURE("index", gather(t, At{ints({1}, {0}), ints({1}, {0}), ints({1}, {0})}));
    EXPECT_FAILURE("limit", gather(t, At{expand(ints({1}, {0}), {1 << 14, 1}), expand(ints({1}, {0}), {1 << 15})}));
}

TEST(IndexTest, TakeAlong) {
    const Tensor t = counting({2, 3});
    expect(take_along(t, 1, ints({2, 2}, {2, 0, 1, 1})), DType::I64, {2, 2}, {2, 0, 4, 4});
    expect(take_along(t, 0, ints({1, 2}, {1, 0})), DType::I64, {1, 2}, {3, 1});
    expect(take_along(t, -1, ints({1, 4}, {0, 1, 2, 0})), DType::I64, {1, 4}, {0, 1, 2, 0});
    expect(take_along(counting({}), 0, ints({}, {0})), DType::I64, {}, {0});
    EXPECT_EQ((*take_along(pinned({2}, {0.1, 0.2}), 0, ints({1}, {1})).pin)[0], 0.2f);
    EXPECT_FAILURE("index", take_along(t, 1, ints({1, 1}, {-1})));
    EXPECT_FAILURE("index", take_along(t, 1, ints({1, 1}, {3})));
    EXPECT_FAILURE("shape", take_along(t, 1, ints({3, 1}, {0, 0, 0})));
    EXPECT_FAILURE("shape", take_along(t, 1, ints({1}, {0})));
    EXPECT_FAILURE("type", take_along(t, 1, floats({1, 1}, {0})));
}

TEST(IndexTest, Scatter) {
    const Tensor t = full({2, 3}, 0, DType::I64, false);
    expect(scatter(t, 1, ints({2, 1}, {2, 0}), ints({2, 2}, {5, 6, 7, 8})), DType::I64, {2, 3}, {0, 0, 5, 7, 0, 0});
    expect(scatter(t, 0, ints({1, 2}, {1, 0}), ints({1, 2}, {5, 6})), DType::I64, {2, 3}, {0, 6, 0, 5, 0, 0});
    expect(scatter(t, 1, ints({1, 2}, {1, 1}), ints({1, 2}, {5, 6})), DType::I64, {2, 3}, {0, 6, 0, 0, 0, 0});
    expect(scatter(bools({1, 2}, {0, 0}), 1, ints({1, 1}, {1}), number(1, DType::Bool)), DType::Bool, {1, 2}, {0, 1});
    expect(t, DType::I64, {2, 3}, {0, 0, 0, 0, 0, 0});
    const Tensor p = pinned({2}, {0.1, 0.2});
    EXPECT_EQ((*scatter(p, 0, ints({1}, {0}), number(0.3, DType::F64)).pin)[0], 0.3f);
    EXPECT_FALSE(scatter(p, 0, ints({1}, {0}), floats({1}, {0.3})).pin);
    EXPECT_FAILURE("index", scatter(t, 1, ints({1, 1}, {3}), ints({1, 1}, {0})));
    EXPECT_FAILURE("shape", scatter(t, 1, ints({1, 2}, {0, 1}), ints({1, 1}, {0})));
    EXPECT_FAILURE("shape", scatter(t, 1, ints({3, 1}, {0, 1, 2}), ints({3, 1}, {0, 0, 0})));
    EXPECT_FAILURE("type", scatter(t, 1, ints({1, 1}, {0}), floats({1, 1}, {0})));
}

TEST(IndexTest, AssignToRanges) {
    const Tensor t = full({2, 3}, 0, DType::I64, false);
    expect(assign(t, {range(0, 2), range(1, 2)}, ints({2}, {5, 6})), DType::I64, {2, 3}, {0, 5, 6, 0, 5, 6});
    expect(assign(t, {range(1, 1), range(0, 2, 2)}, number(7, DType::I64)), DType::I64, {2, 3}, {0, 0, 0, 7, 0, 7});
    expect(assign(t, {range(0, 1), range(2, 3, -1)}, ints({3}, {1, 2, 3})), DType::I64, {2, 3}, {3, 2, 1, 0, 0, 0});
    expect(assign(t, {range(0, 0), range(0, 3)}, number(7, DType::I64)), DType::I64, {2, 3}, {0, 0, 0, 0, 0, 0});
    expect(assign(t, {range(0, 1), range(0, 2)}, ints({1, 1, 1, 2}, {4, 5})), DType::I64, {2, 3}, {4, 5, 0, 0, 0, 0});
    expect(assign(t, {range(0, 2), range(0, 1)}, floats({}, {-1.7})), DType::I64, {2, 3}, {-1, 0, 0, -1, 0, 0});
    expect(assign(counting({}), {}, number(9, DType::I64)), DType::I64, {}, {9});
}

TEST(IndexTest, AssignByTensors) {
    const Tensor t = full({2, 3}, 0, DType::I64, false);
    expect(assign(t, {position(ints({}, {-1})), range(0, 3)}, ints({3}, {1, 2, 3})), DType::I64, {2, 3},
           {0, 0, 0, 1, 2, 3});
    expect(assign(t, {range(0, 2), position(ints({2}, {2, 0}))}, ints({2, 2}, {1, 2, 3, 4})), DType::I64, {2, 3},
           {2, 0, 1, 4, 0, 3});
    expect(assign(t, {position(ints({2}, {0, 1})), position(ints({2}, {1, 2}))}, ints({2}, {8, 9})), DType::I64, {2, 3},
           {0, 8, 0, 0, 0, 9});
    expect(assign(t, {position(ints({2}, {1, 1})), position(ints({}, {0}))}, ints({2}, {8, 9})), DType::I64, {2, 3},
           {0, 0, 0, 9, 0, 0});
    const Tensor p = pinned({2}, {0.1, 0.2});
    EXPECT_EQ((*assign(p, {range(1, 1)}, number(0.3, DType::F64)).pin)[1], 0.3f);
    EXPECT_EQ((*assign(p, {range(1, 1)}, ints({}, {3})).pin)[1], 3.0f);
    EXPECT_FALSE(assign(p, {range(1, 1)}, floats({}, {0.3})).pin);
    EXPECT_FALSE(assign(floats({1}, {1}), {range(0, 1)}, pinned({}, {0.3})).pin);
}

TEST(IndexTest, AssignRefuses) {
    const Tensor t = full({2, 3}, 0, DType::I64, false);
    EXPECT_FAILURE("index", assign(t, {range(0, 2)}, number(1, DType::I64)));
    EXPECT_FAILURE("index", assign(t, {range(1, 2), range(0, 3)}, number(1, DType::I64)));
    EXPECT_FAILURE("index", assign(t, {range(0, 2), range(0, 2, 3)}, number(1, DType::I64)));
    EXPECT_FAILURE("index", assign(t, {range(0, 2), range(0, 2, -1)}, number(1, DType::I64)));
    EXPECT_FAILURE("index", assign(t, {position(ints({}, {2})), range(0, 3)}, number(1, DType::I64)));
    EXPECT_EQ(failure([&] {
                  return assign(t, {range(0, 2), range(0, 3)}, ints({2}, {1, 2}));
              }),
              "shape: assignment: shapes [2] and [2, 3] don't broadcast");
    EXPECT_FAILURE("shape", assign(t, {range(0, 1), range(0, 1)}, ints({2}, {1, 2})));
    EXPECT_FAILURE("shape", assign(t, {range(0, 2), range(0, 3)}, counting({2, 2, 3})));
}

} // namespace
} // namespace cubridge::ir::tensor
