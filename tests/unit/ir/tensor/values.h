// Short ways to write tensors and what is expected of them. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/error.h"
#include "ir/tensor/tensor.h"
#include <cmath>
#include <gtest/gtest.h>
#include <limits>

namespace cubridge::ir::tensor {

using Values = std::vector<double>;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

inline Tensor ints(Shape shape, Values v) {
    return from_values(std::move(shape), std::move(v), DType::I64, false);
}
inline Tensor bools(Shape shape, Values v) {
    return from_values(std::move(shape), std::move(v), DType::Bool, false);
}
inline Tensor floats(Shape shape, Values v) {
    return from_values(std::move(shape), std::move(v), DType::F32, false);
}
inline Tensor pinned(Shape shape, Values v) {
    return from_values(std::move(shape), std::move(v), DType::F32, true);
}
inline Tensor doubles(Shape shape, Values v) {
    return from_values(std::move(shape), std::move(v), DType::F64, false);
}

/// 0, 1, 2, ... in a shape.
inline Tensor counting(Shape shape, DType dtype = DType::I64) {
    std::int64_t n = 1;
    for (const std::int64_t s : shape) n *= s;
    return reshape(arange(0, 1, n, dtype), shape);
}

inline void expect(const Tensor& t, DType dtype, const Shape& shape, const Values& values) {
    EXPECT_STREQ(torch_name(t.dtype), torch_name(dtype));
    EXPECT_EQ(t.shape, shape);
    ASSERT_EQ(t.data->size(), values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
        const double got = (*t.data)[i];
        if (std::isnan(values[i]))
            EXPECT_TRUE(std::isnan(got)) << "at " << i << ": " << got;
        else if (std::isinf(values[i]) || !is_float(dtype))
            EXPECT_EQ(got, values[i]) << "at " << i;
        else
            EXPECT_NEAR(got, values[i], 1e-14 * std::fmax(1, std::fabs(values[i]))) << "at " << i;
    }
    if (t.pin) {
        EXPECT_EQ(t.pin->size(), values.size());
        EXPECT_TRUE(t.dtype == DType::F32 || t.scalar);
    }
}

/// Runs f and gives the Failure's kind and message, "kind: message".
template <class F> std::string failure(F f) {
    try {
        static_cast<void>(f());
    } catch (const Failure& caught) {
        return caught.error.kind + ": " + caught.error.message;
    }
    return "no failure";
}

inline bool starts(const std::string& text, const std::string& with) {
    return text.compare(0, with.size(), with) == 0;
}

#define EXPECT_FAILURE(kind, expression)                                                                               \
    EXPECT_PRED2(starts, failure([&] { return expression; }), std::string(kind) + ": ")

} // namespace cubridge::ir::tensor
