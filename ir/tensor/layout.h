// Shapes, strides and the walk over them that every tensor operation shares. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/tensor/tensor.h"
#include <algorithm>
#include <array>
#include <cstddef>

namespace cubridge::ir::tensor {

constexpr std::size_t at(std::int64_t i) {
    return static_cast<std::size_t>(i);
}
constexpr std::int64_t length(std::size_t n) {
    return static_cast<std::int64_t>(n);
}

/// "[2, 3]"
std::string text(const Shape& shape);

/// The number of elements; a negative size is a Failure "shape", more than kMaxElements (sizes of 0 left out) one of
/// kind "limit".
std::int64_t elements(const Shape& shape);

/// Row major, in elements.
Shape strides_of(const Shape& shape);

/// The strides with which a tensor of `shape` is read as one of `target`, to which it broadcasts: 0 where it repeats.
Shape strides_as(const Shape& shape, const Shape& target);

/// What both broadcast to; `what` names the operation in the Failure.
Shape broadcast(const Shape& a, const Shape& b, const char* what);

/// A dim, negative ones counted from the end; a Failure "index" if there is none such.
std::int64_t axis_of(std::int64_t dim, std::int64_t rank);

/// A contiguous copy of the elements of `t` at offset + sum of index * strides, its pin likewise; dtype as t's.
Tensor strided(const Tensor& t, Shape shape, std::int64_t offset, const Shape& strides);

/// t with another shape of as many elements; shares its values.
Tensor reshaped(const Tensor& t, Shape shape);

/// Merges neighbouring axes that all N operands step through evenly, so that the innermost loop is long.
template <std::size_t N> void coalesce(Shape& shape, std::array<Shape, N>& strides) {
    std::size_t last = 0;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == 1) continue;
        bool even = last > 0;
        for (const Shape& s : strides) even = even && s[last - 1] == s[axis] * shape[axis];
        if (!even) ++last;
        shape[last - 1] = even ? shape[last - 1] * shape[axis] : shape[axis];
        for (Shape& s : strides) s[last - 1] = s[axis];
    }
    shape.resize(last);
    for (Shape& s : strides) s.resize(last);
}

/// Calls row(offsets, count, steps) for each innermost run, in row-major order of `shape`.
template <std::size_t N, class Row> void walk(Shape shape, std::array<Shape, N> strides, Row row) {
    if (std::find(shape.begin(), shape.end(), 0) != shape.end()) return;
    coalesce(shape, strides);
    std::array<std::int64_t, N> offsets{}, steps{};
    std::int64_t count = 1;
    if (!shape.empty()) {
        count = shape.back();
        shape.pop_back();
        for (std::size_t k = 0; k < N; ++k) steps[k] = strides[k].back();
    }
    Shape index(shape.size(), 0);
    while (true) {
        row(offsets, count, steps);
        std::size_t axis = shape.size();
        for (; axis > 0; --axis) {
            const std::size_t a = axis - 1;
            for (std::size_t k = 0; k < N; ++k) offsets[k] += strides[k][a];
            if (++index[a] < shape[a]) break;
            index[a] = 0;
            for (std::size_t k = 0; k < N; ++k) offsets[k] -= strides[k][a] * shape[a];
        }
        if (axis == 0) return;
    }
}

} // namespace cubridge::ir::tensor
