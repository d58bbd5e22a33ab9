// Positions by value. NaN counts as the largest value; ties keep their order. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include <cmath>
#include <numeric>

namespace cubridge::ir::tensor {

namespace {

double key(const Tensor& t, std::int64_t i) {
    return t.pin ? double{(*t.pin)[at(i)]} : (*t.data)[at(i)];
}

bool greater(double a, double b) {
    return std::isnan(a) ? !std::isnan(b) : a > b;
}

/// The axis as runs: positions base + i * step, i < size.
struct Runs {
    std::int64_t size = 1, step = 1;
};

Runs runs(const Tensor& t, std::int64_t axis) {
    if (t.shape.empty()) return {};
    return {t.shape[at(axis)], strides_of(t.shape)[at(axis)]};
}

} // namespace

Tensor argsort(const Tensor& t, std::int64_t dim, bool descending) {
    const Runs r = runs(t, axis_of(dim, std::max<std::int64_t>(t.rank(), 1)));
    std::vector<double> data(t.data->size());
    std::vector<double> keys(at(r.size));
    std::vector<std::size_t> order(at(r.size));
    for (std::int64_t block = 0; block < t.size(); block += r.step * r.size)
        for (std::int64_t lane = block; lane < block + r.step; ++lane) {
            for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = key(t, lane + length(i) * r.step);
            std::iota(order.begin(), order.end(), std::size_t{0});
            std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
                return descending ? greater(keys[a], keys[b]) : greater(keys[b], keys[a]);
            });
            for (std::size_t i = 0; i < order.size(); ++i)
                data[at(lane + length(i) * r.step)] = static_cast<double>(order[i]);
        }
    Tensor out;
    out.dtype = DType::I64;
    out.shape = t.shape;
    out.data = std::make_shared<const std::vector<double>>(std::move(data));
    return out;
}

Tensor argmax(const Tensor& t, std::int64_t dim, bool keepdim) {
    const std::int64_t axis = axis_of(dim, std::max<std::int64_t>(t.rank(), 1));
    const Runs r = runs(t, axis);
    if (r.size == 0) fail("shape", "argmax over an axis of size 0 of a tensor of shape " + text(t.shape));
    std::vector<double> data;
    for (std::int64_t block = 0; block < t.size(); block += r.step * r.size)
        for (std::int64_t lane = block; lane < block + r.step; ++lane) {
            std::int64_t best = 0;
            for (std::int64_t i = 1; i < r.size; ++i)
                if (greater(key(t, lane + i * r.step), key(t, lane + best * r.step))) best = i;
            data.push_back(static_cast<double>(best));
        }
    Tensor out;
    out.dtype = DType::I64;
    out.shape = t.shape;
    if (!t.shape.empty()) {
        if (keepdim)
            out.shape[at(axis)] = 1;
        else
            out.shape.erase(out.shape.begin() + axis);
    }
    out.data = std::make_shared<const std::vector<double>>(std::move(data));
    return out;
}

} // namespace cubridge::ir::tensor
