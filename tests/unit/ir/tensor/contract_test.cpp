// SPDX-License-Identifier: Apache-2.0
#include "values.h"
#include <map>
#include <random>

namespace cubridge::ir::tensor {
namespace {

using Labels = std::vector<int>;

/// The definition: for each assignment of the labels, the product of the operands.
Values by_definition(const std::vector<Tensor>& x, const std::vector<Labels>& labels, const Labels& out, Shape* shape) {
    std::map<int, std::int64_t> sizes;
    for (std::size_t k = 0; k < x.size(); ++k)
        for (std::size_t a = 0; a < labels[k].size(); ++a) {
            std::int64_t& size = sizes.emplace(labels[k][a], 1).first->second;
            if (size == 1) size = x[k].shape[a];
        }
    Labels all = out;
    for (const auto& [label, size] : sizes)
        if (std::find(out.begin(), out.end(), label) == out.end()) all.push_back(label);
    std::int64_t n = 1, inner = 1;
    for (std::size_t a = 0; a < all.size(); ++a) {
        (a < out.size() ? n : inner) *= sizes[all[a]];
        if (a < out.size()) shape->push_back(sizes[all[a]]);
    }
    Values result(static_cast<std::size_t>(n), 0.0);
    for (std::int64_t flat = 0; flat < n * inner; ++flat) {
        std::map<int, std::int64_t> at;
        std::int64_t rest = flat;
        for (std::size_t a = all.size(); a-- > 0; rest /= sizes[all[a]]) at[all[a]] = rest % sizes[all[a]];
        double product = 1;
        for (std::size_t k = 0; k < x.size(); ++k) {
            std::int64_t offset = 0;
            for (std::size_t a = 0; a < labels[k].size(); ++a)
                offset = offset * x[k].shape[a] + (x[k].shape[a] == 1 ? 0 : at[labels[k][a]]);
            product *= (*x[k].data)[static_cast<std::size_t>(offset)];
        }
        result[static_cast<std::size_t>(flat / inner)] += product;
    }
    return result;
}

Tensor random(const Shape& shape, std::mt19937& engine) {
    std::int64_t n = 1;
    for (const std::int64_t s : shape) n *= s;
    std::uniform_real_distribution<double> uniform(-1, 1);
    Values v(static_cast<std::size_t>(n));
    for (double& value : v) value = uniform(engine);
    return doubles(shape, v);
}

void check(const std::vector<Shape>& shapes, const std::vector<Labels>& labels, const Labels& out) {
    std::mt19937 engine(7);
    std::vector<Tensor> x;
    for (const Shape& s : shapes) x.push_back(random(s, engine));
    Shape shape;
    const Values want = by_definition(x, labels, out, &shape);
    const Tensor got = contract(x, labels, out);
    EXPECT_EQ(got.shape, shape);
    ASSERT_EQ(got.data->size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) EXPECT_NEAR((*got.data)[i], want[i], 1e-12) << i;
}

enum : int { b, h, i, j, k, l };

TEST(ContractTest, MatmulByHand) {
    expect(contract({ints({2, 2}, {1, 2, 3, 4}), ints({2, 2}, {5, 6, 7, 8})}, {{i, k}, {k, j}}, {i, j}), DType::I64,
           {2, 2}, {19, 22, 43, 50});
    expect(contract({ints({2}, {1, 2}), ints({2}, {5, 6})}, {{i}, {i}}, {}), DType::I64, {}, {17});
    expect(contract({ints({2}, {1, 2}), ints({2}, {5, 6})}, {{i}, {j}}, {j, i}), DType::I64, {2, 2}, {5, 10, 6, 12});
    expect(contract({ints({2, 2}, {1, 2, 3, 4})}, {{i, i}}, {}), DType::I64, {}, {5});
    expect(contract({ints({2, 2}, {1, 2, 3, 4})}, {{i, i}}, {i}), DType::I64, {2}, {1, 4});
    expect(contract({ints({2, 2}, {1, 2, 3, 4})}, {{i, j}}, {j, i}), DType::I64, {2, 2}, {1, 3, 2, 4});
    expect(contract({ints({}, {3}), ints({2}, {5, 6})}, {{}, {i}}, {i}), DType::I64, {2}, {15, 18});
}

TEST(ContractTest, EveryFormIsItsDefinition) {
    for (const std::int64_t n : {1, 3, 4, 5, 8, 9}) check({{n, 7}, {7, 10 - n}}, {{i, k}, {k, j}}, {i, j});
    check({{5, 7}, {9, 7}}, {{i, k}, {j, k}}, {i, j});
    check({{7, 5}, {9, 7}}, {{k, i}, {j, k}}, {j, i});
    check({{2, 3, 5, 7}, {2, 3, 9, 7}}, {{b, h, i, k}, {b, h, j, k}}, {b, h, i, j}); // scores
    check({{2, 3, 5, 9}, {2, 9, 3, 7}}, {{b, h, i, j}, {b, j, h, k}}, {b, i, h, k}); // output, other layout
    check({{3, 3, 4}, {3, 4}}, {{i, i, k}, {i, k}}, {k, i});                         // diagonal and batch
    check({{3, 4}, {3, 4}}, {{i, k}, {i, k}}, {i, k});                               // elementwise
    check({{3, 4}, {5, 6}}, {{i, k}, {j, l}}, {l, i});                               // sums in one operand only
    check({{3}, {4}}, {{i}, {j}}, {});
    check({{3, 1}, {4, 5}}, {{i, k}, {k, j}}, {i, j}); // sizes of 1 broadcast, summed ...
    check({{1, 4}, {3, 4}}, {{b, k}, {b, k}}, {b});    // ... and kept
    check({{1, 4}, {3, 4}}, {{b, k}, {b, k}}, {});
    check({{2, 3}, {3, 4}, {4, 5}}, {{i, j}, {j, k}, {k, l}}, {i, l});
    check({{2, 1}, {1, 4}, {3, 4}}, {{i, j}, {j, k}, {j, k}}, {i, j}); // the third gives the size
    check({{2, 3}, {3}, {2}}, {{i, j}, {j}, {i}}, {});
    check({{4, 3, 2}}, {{i, j, k}}, {k, i});
}

TEST(ContractTest, OfSizeZero) {
    check({{3, 0}, {0, 4}}, {{i, k}, {k, j}}, {i, j});
    check({{0, 3}, {3, 4}}, {{i, k}, {k, j}}, {i, j});
    check({{3, 2}, {2, 0}}, {{i, k}, {k, j}}, {i, j});
    check({{3, 1}, {0, 4}}, {{i, k}, {k, j}}, {i, j});
    check({{0}}, {{i}}, {});
}

TEST(ContractTest, NaNAndInfinityReachTheirRowsOnly) {
    const Tensor c = contract({floats({2, 2}, {0, kNaN, 1, 2}), floats({2, 1}, {kInf, 1})}, {{i, k}, {k, j}}, {i, j});
    expect(c, DType::F32, {2, 1}, {kNaN, kInf});
}

TEST(ContractTest, DtypesAndPins) {
    const Tensor p = pinned({2}, {0.1, 0.2});
    const Tensor c = contract({p, p}, {{i}, {i}}, {});
    EXPECT_EQ((*c.pin)[0], static_cast<float>(double{0.1f} * 0.1f + double{0.2f} * 0.2f));
    EXPECT_NEAR((*c.data)[0], 0.05, 1e-16);
    EXPECT_FALSE(contract({p, floats({2}, {1, 2})}, {{i}, {i}}, {}).pin);
    EXPECT_EQ(contract({full({2}, 1, DType::BF16, false), full({2}, 1, DType::BF16, false)}, {{i}, {j}}, {i, j}).dtype,
              DType::BF16);
    expect(contract({bools({2}, {1, 1})}, {{i}}, {}), DType::I64, {}, {2});
    EXPECT_FAILURE("type", contract({bools({2}, {1, 1}), bools({2}, {1, 1})}, {{i}, {i}}, {}));
    EXPECT_FAILURE("limit", contract({ints({1}, {4294967296.0}), ints({1}, {4294967296.0})}, {{i}, {i}}, {}));
}

TEST(ContractTest, Refuses) {
    const Tensor t = counting({2, 3});
    EXPECT_FAILURE("shape", contract({}, {}, {}));
    EXPECT_FAILURE("shape", contract({t}, {{i}}, {i}));
    EXPECT_FAILURE("shape", contract({t}, {{i, i}}, {i}));
    EXPECT_FAILURE("shape", contract({t}, {{i, j}}, {i, i}));
    EXPECT_FAILURE("shape", contract({t}, {{i, j}}, {k}));
    EXPECT_EQ(failure([&] {
                  return contract({t, t}, {{i, k}, {k, j}}, {i, j});
              }),
              "shape: einsum: shapes [2, 3] and [2, 3] have different sizes for one label, 3 and 2");
    const Tensor wide = full({1 << 15}, 1, DType::F32, false);
    EXPECT_FAILURE("limit", contract({wide, wide}, {{i}, {j}}, {i, j}));
}

} // namespace
} // namespace cubridge::ir::tensor
