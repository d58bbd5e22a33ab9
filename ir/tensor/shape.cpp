// Operations that move elements and compute nothing. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include "ir/tensor/promotion.h"
#include <algorithm>

namespace cubridge::ir::tensor {

Tensor reshape(const Tensor& t, const Shape& shape) {
    Shape out = shape;
    std::int64_t known = 1, open = -1;
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (shape[axis] == -1 && open < 0)
            open = length(axis);
        else if (shape[axis] < 0)
            fail("shape", "reshape to " + text(shape) + ": only one size may be -1, and none else is negative");
    }
    if (open >= 0) out[at(open)] = 1;
    known = elements(out);
    if (open >= 0) {
        if (known == 0 || t.size() % known != 0)
            fail("shape", "a tensor of shape " + text(t.shape) + " can't be reshaped to " + text(shape));
        out[at(open)] = t.size() / known;
    } else if (known != t.size()) {
        fail("shape", "a tensor of shape " + text(t.shape) + " can't be reshaped to " + text(shape));
    }
    return reshaped(t, std::move(out));
}

Tensor permute(const Tensor& t, const std::vector<std::int64_t>& order) {
    if (order.size() != t.shape.size())
        fail("shape", "permute: " + std::to_string(order.size()) + " dims are given for shape " + text(t.shape));
    const Shape own = strides_of(t.shape);
    Shape shape, strides;
    std::vector<bool> seen(order.size(), false);
    bool moved = false;
    for (const std::int64_t dim : order) {
        const std::int64_t axis = axis_of(dim, t.rank());
        if (seen[at(axis)]) fail("shape", "permute: dim " + std::to_string(dim) + " is given twice");
        seen[at(axis)] = true;
        moved = moved || axis != length(shape.size());
        shape.push_back(t.shape[at(axis)]);
        strides.push_back(own[at(axis)]);
    }
    return moved ? strided(t, std::move(shape), 0, strides) : t;
}

Tensor expand(const Tensor& t, const Shape& shape) {
    if (shape.size() < t.shape.size())
        fail("shape", "a tensor of shape " + text(t.shape) + " can't be expanded to " + text(shape));
    Shape out = shape;
    const std::size_t lead = shape.size() - t.shape.size();
    for (std::size_t axis = 0; axis < out.size(); ++axis) {
        if (axis >= lead && out[axis] == -1) out[axis] = t.shape[axis - lead];
        if (out[axis] < 0 || (axis >= lead && t.shape[axis - lead] != 1 && t.shape[axis - lead] != out[axis]))
            fail("shape", "a tensor of shape " + text(t.shape) + " can't be expanded to " + text(shape));
    }
    return out == t.shape ? t : strided(t, out, 0, strides_as(t.shape, out));
}

Tensor slice(const Tensor& t, std::int64_t dim, std::int64_t start, std::int64_t stop, std::int64_t step) {
    const std::size_t axis = at(axis_of(dim, t.rank()));
    if (step <= 0) fail("index", "a slice's step is positive, not " + std::to_string(step));
    const std::int64_t size = t.shape[axis];
    const auto clip = [size](std::int64_t x) { return std::clamp(x < 0 ? x + size : x, std::int64_t{0}, size); };
    start = clip(start);
    stop = std::max(clip(stop), start);
    const std::int64_t count = (stop - start) / step + ((stop - start) % step ? 1 : 0);
    if (count == size) return reshaped(t, t.shape);
    Shape strides = strides_of(t.shape), shape = t.shape;
    const std::int64_t offset = start * strides[axis];
    shape[axis] = count;
    strides[axis] *= count > 1 ? step : 1; // a step beyond the end would overflow
    return strided(t, std::move(shape), offset, strides);
}

Tensor select(const Tensor& t, std::int64_t dim, std::int64_t position) {
    const std::int64_t axis = axis_of(dim, t.rank());
    const std::int64_t size = t.shape[at(axis)];
    if (position < -size || position >= size)
        fail("index", "index " + std::to_string(position) + " is out of range for dim " + std::to_string(axis) +
                          " of shape " + text(t.shape));
    Shape strides = strides_of(t.shape), shape = t.shape;
    const std::int64_t offset = (position < 0 ? position + size : position) * strides[at(axis)];
    shape.erase(shape.begin() + axis);
    strides.erase(strides.begin() + axis);
    return strided(t, std::move(shape), offset, strides);
}

Tensor flip(const Tensor& t, std::int64_t dim) {
    const std::size_t axis = at(axis_of(dim, t.rank()));
    Shape strides = strides_of(t.shape);
    const std::int64_t offset = std::max<std::int64_t>(t.shape[axis] - 1, 0) * strides[axis];
    strides[axis] = -strides[axis];
    return strided(t, t.shape, offset, strides);
}

Tensor concat(const std::vector<Tensor>& x, std::int64_t dim) {
    if (x.empty()) fail("shape", "cat of no tensors");
    const Tensor* first = nullptr; // PyTorch skips tensors of shape [0], whatever the others' rank
    for (const Tensor& t : x) {
        if (t.shape.empty()) fail("shape", "a tensor of rank 0 can't be concatenated");
        if (!first && t.shape != Shape{0}) first = &t;
    }
    if (!first) first = &x.front();
    const std::size_t axis = at(axis_of(dim, first->rank()));
    Shape shape = first->shape;
    shape[axis] = 0;
    for (const Tensor& t : x) {
        if (t.shape == Shape{0} && first->shape != Shape{0}) continue;
        bool same = t.rank() == first->rank();
        for (std::size_t a = 0; same && a < shape.size(); ++a) same = a == axis || t.shape[a] == shape[a];
        if (!same)
            fail("shape", "shapes " + text(first->shape) + " and " + text(t.shape) +
                              " can't be concatenated along dim " + std::to_string(axis));
        shape[axis] += t.shape[axis];
    }
    const std::int64_t total = elements(shape);
    Tensor out;
    out.dtype = result_type(x);
    const bool pinned = out.dtype == DType::F32 && all_pinnable(x);
    std::int64_t outer = 1, inner = 1;
    for (std::size_t a = 0; a < axis; ++a) outer *= shape[a];
    for (std::size_t a = axis + 1; a < shape.size(); ++a) inner *= shape[a];
    const auto join = [&](auto& to, const auto& part) {
        to.reserve(at(total));
        for (std::int64_t o = 0; o < outer; ++o) {
            for (std::size_t k = 0; k < x.size(); ++k) {
                const std::int64_t run = x[k].shape == Shape{0} ? 0 : x[k].shape[axis] * inner;
                const auto& from = *part[k];
                to.insert(to.end(), from.begin() + o * run, from.begin() + (o + 1) * run);
            }
        }
    };
    std::vector<double> data;
    std::vector<std::shared_ptr<const std::vector<double>>> parts;
    for (const Tensor& t : x) parts.push_back(cast(t, out.dtype).data);
    join(data, parts);
    out.data = std::make_shared<const std::vector<double>>(std::move(data));
    if (pinned) {
        std::vector<float> pin;
        std::vector<std::shared_ptr<const std::vector<float>>> pins;
        for (const Tensor& t : x) pins.push_back(pin_of(t));
        join(pin, pins);
        out.pin = std::make_shared<const std::vector<float>>(std::move(pin));
    }
    out.shape = std::move(shape);
    return out;
}

Tensor repeat_interleave(const Tensor& t, std::int64_t times, std::int64_t dim) {
    const std::int64_t axis = axis_of(dim, t.rank());
    if (times < 0) fail("shape", "repeat_interleave repeats a number of times, not " + std::to_string(times));
    // An axis of its own for the copies, then both read as one.
    Shape shape = t.shape, strides = strides_of(t.shape);
    shape.insert(shape.begin() + axis + 1, times);
    strides.insert(strides.begin() + axis + 1, 0);
    Shape merged = t.shape;
    if (times > 0 && merged[at(axis)] > kMaxElements / times)
        merged[at(axis)] = kMaxElements + 1; // fails below
    else
        merged[at(axis)] *= times;
    elements(merged);
    return reshaped(strided(t, std::move(shape), 0, strides), std::move(merged));
}

} // namespace cubridge::ir::tensor
