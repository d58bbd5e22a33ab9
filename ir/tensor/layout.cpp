// Shapes, strides and strided copies. SPDX-License-Identifier: Apache-2.0
#include "ir/tensor/layout.h"
#include "cubridge/ir/error.h"

namespace cubridge::ir::tensor {

std::int64_t Tensor::size() const {
    std::int64_t n = 1;
    for (const std::int64_t s : shape) n *= s;
    return n;
}

std::string text(const Shape& shape) {
    std::string out = "[";
    for (std::size_t i = 0; i < shape.size(); ++i) out += (i ? ", " : "") + std::to_string(shape[i]);
    return out + "]";
}

std::string describe(const Tensor& t) {
    return std::string(torch_name(t.dtype)) + " " + text(t.shape);
}

std::int64_t elements(const Shape& shape) {
    // Sizes of 0 don't excuse the others, so that no product of some of a tensor's sizes can overflow anywhere.
    std::int64_t n = 1;
    bool empty = false;
    for (const std::int64_t s : shape) {
        if (s < 0) fail("shape", "a tensor has no negative size, but shape " + text(shape) + " has one");
        empty = empty || s == 0;
        if (s > kMaxElements / n)
            fail("limit", "a tensor of shape " + text(shape) + " exceeds the limit of " + std::to_string(kMaxElements) +
                              " elements");
        n *= s == 0 ? 1 : s;
    }
    return empty ? 0 : n;
}

Shape strides_of(const Shape& shape) {
    Shape strides(shape.size());
    std::int64_t step = 1;
    for (std::size_t axis = shape.size(); axis-- > 0;) {
        strides[axis] = step;
        step *= shape[axis];
    }
    return strides;
}

Shape strides_as(const Shape& shape, const Shape& target) {
    const Shape own = strides_of(shape);
    Shape strides(target.size(), 0);
    const std::size_t lead = target.size() - shape.size();
    for (std::size_t axis = 0; axis < shape.size(); ++axis)
        strides[lead + axis] = shape[axis] == target[lead + axis] ? own[axis] : 0;
    return strides;
}

Shape broadcast(const Shape& a, const Shape& b, const char* what) {
    const Shape& longer = a.size() >= b.size() ? a : b;
    const Shape& shorter = a.size() >= b.size() ? b : a;
    Shape out = longer;
    const std::size_t lead = longer.size() - shorter.size();
    for (std::size_t axis = 0; axis < shorter.size(); ++axis) {
        std::int64_t& size = out[lead + axis];
        if (size == 1)
            size = shorter[axis];
        else if (shorter[axis] != 1 && shorter[axis] != size)
            fail("shape", std::string(what) + ": shapes " + text(a) + " and " + text(b) + " don't broadcast");
    }
    return out;
}

std::int64_t axis_of(std::int64_t dim, std::int64_t rank) {
    if (dim < -rank || dim >= rank)
        fail("index", "there is no dim " + std::to_string(dim) + " in a tensor of rank " + std::to_string(rank));
    return dim < 0 ? dim + rank : dim;
}

Tensor reshaped(const Tensor& t, Shape shape) {
    Tensor out = t;
    out.shape = std::move(shape);
    out.scalar = false;
    return out;
}

namespace {

template <class T>
std::shared_ptr<const std::vector<T>> copy(const std::vector<T>& from, const Shape& shape, std::int64_t offset,
                                           const Shape& strides) {
    auto to = std::make_shared<std::vector<T>>();
    to->reserve(at(elements(shape)));
    walk<1>(shape, {strides}, [&](const auto& offsets, std::int64_t count, const auto& steps) {
        const T* source = from.data() + offset + offsets[0];
        if (steps[0] == 1)
            to->insert(to->end(), source, source + count);
        else
            for (std::int64_t i = 0; i < count; ++i) to->push_back(source[i * steps[0]]);
    });
    return to;
}

} // namespace

Tensor strided(const Tensor& t, Shape shape, std::int64_t offset, const Shape& strides) {
    Tensor out;
    out.dtype = t.dtype;
    out.data = copy(*t.data, shape, offset, strides);
    if (t.pin) out.pin = copy(*t.pin, shape, offset, strides);
    out.shape = std::move(shape);
    return out;
}

} // namespace cubridge::ir::tensor
