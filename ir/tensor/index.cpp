// Reading and writing at positions that tensors hold. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include "ir/tensor/promotion.h"

namespace cubridge::ir::tensor {

namespace {

void check_index(const Tensor& index) {
    if (index.dtype == DType::Bool || index.dtype == DType::U8)
        fail("type", "an index of " + describe(index) + " is a mask, and the result's shape would hang on its values");
    if (!is_integer(index.dtype)) fail("type", "an index is of integers, not of " + describe(index));
}

std::int64_t wrapped(double value, std::int64_t size, std::size_t axis, const Shape& shape) {
    const auto position = static_cast<std::int64_t>(value);
    if (position < -size || position >= size)
        fail("index", "index " + std::to_string(position) + " is out of range for dim " + std::to_string(axis) +
                          " of shape " + text(shape));
    return position < 0 ? position + size : position;
}

/// The offsets that a walk over `shape` with `strides` visits.
std::vector<std::int64_t> offsets_of(const Shape& shape, const Shape& strides) {
    std::vector<std::int64_t> out;
    out.reserve(at(elements(shape)));
    walk<1>(shape, {strides}, [&](const auto& from, std::int64_t count, const auto& steps) {
        for (std::int64_t i = 0; i < count; ++i) out.push_back(from[0] + i * steps[0]);
    });
    return out;
}

/// A region of a tensor: every sum of an offset before, one at, and one after the axes that tensors index.
struct Selection {
    Shape shape;
    std::vector<std::int64_t> before, here, after;

    template <class F> void each(F f) const {
        std::size_t k = 0;
        for (const std::int64_t b : before)
            for (const std::int64_t h : here)
                for (const std::int64_t a : after) f(k++, at(b + h + a));
    }
};

Selection selection(const Shape& shape, const std::vector<Region>& where) {
    if (where.size() != shape.size()) fail("index", std::to_string(where.size()) + " indices for shape " + text(shape));
    const Shape own = strides_of(shape);
    Shape indexed; // what the index tensors broadcast to
    std::int64_t constant = 0;
    for (const Region& r : where) {
        if (!r.index) continue;
        check_index(*r.index);
        indexed = broadcast(indexed, r.index->shape, "index");
    }
    // A 0-d index selects, and its axis is gone; the others stand where they are if they are neighbours, else first.
    std::vector<std::size_t> axes;
    bool adjacent = true, ended = false;
    for (std::size_t axis = 0; axis < where.size(); ++axis) {
        if (!where[axis].index) {
            ended = ended || !axes.empty();
        } else if (!where[axis].index->shape.empty()) {
            adjacent = adjacent && !ended;
            axes.push_back(axis);
        }
    }
    Shape sizes[2], strides[2];
    for (std::size_t axis = 0; axis < where.size(); ++axis) {
        const Region& r = where[axis];
        if (r.index) continue;
        const std::int64_t size = shape[axis], step = r.count > 1 ? r.step : 0;
        const bool sane = r.count >= 0 && r.count <= size && r.start <= size && step <= size && step >= -size;
        const std::int64_t last = sane ? r.start + (r.count - 1) * step : 0;
        if (!sane || (r.count > 0 && (std::min(r.start, last) < 0 || std::max(r.start, last) >= size)))
            fail("index", "a range of " + std::to_string(r.count) + " from " + std::to_string(r.start) +
                              " is out of range for dim " + std::to_string(axis) + " of shape " + text(shape));
        const int side = axes.empty() || (adjacent && axis < axes.front()) ? 0 : 1;
        constant += r.count > 0 ? r.start * own[axis] : 0;
        sizes[side].push_back(r.count);
        strides[side].push_back(step * own[axis]);
    }
    Selection s;
    s.shape = sizes[0];
    s.shape.insert(s.shape.end(), indexed.begin(), indexed.end());
    s.shape.insert(s.shape.end(), sizes[1].begin(), sizes[1].end());
    elements(s.shape);
    s.before = offsets_of(sizes[0], strides[0]);
    s.after = offsets_of(sizes[1], strides[1]);
    s.here.assign(at(elements(indexed)), constant);
    if (elements(s.shape) == 0) return s; // nothing is read, and PyTorch checks no index then
    for (std::size_t axis = 0; axis < where.size(); ++axis) {
        if (!where[axis].index) continue;
        const Tensor& index = *where[axis].index;
        std::size_t k = 0;
        walk<1>(indexed, {strides_as(index.shape, indexed)},
                [&](const auto& from, std::int64_t count, const auto& steps) {
                    for (std::int64_t i = 0; i < count; ++i)
                        s.here[k++] +=
                            wrapped((*index.data)[at(from[0] + i * steps[0])], shape[axis], axis, shape) * own[axis];
                });
    }
    return s;
}

template <class T>
std::shared_ptr<const std::vector<T>> picked(const std::vector<T>& from, const Selection& s, std::int64_t n) {
    auto out = std::make_shared<std::vector<T>>(at(n));
    s.each([&](std::size_t k, std::size_t offset) { (*out)[k] = from[offset]; });
    return out;
}

/// `index` of torch.gather and scatter: as many dims as `t`, no larger but along `dim`.
void check_along(const char* what, const Tensor& t, std::size_t axis, const Tensor& index) {
    check_index(index);
    bool fits = index.rank() == t.rank();
    for (std::size_t a = 0; fits && a < index.shape.size(); ++a) fits = a == axis || index.shape[a] <= t.shape[a];
    if (!fits)
        fail("shape", std::string(what) + " along dim " + std::to_string(axis) + ": an index of shape " +
                          text(index.shape) + " doesn't fit a tensor of shape " + text(t.shape));
}

/// Calls f(position in index, offset in t, offset in a tensor of strides `other`).
template <class F> void each_along(const Tensor& t, std::size_t axis, const Tensor& index, const Shape& other, F f) {
    Shape rest = strides_of(t.shape);
    const std::int64_t step = rest.empty() ? 1 : rest[axis], size = t.shape.empty() ? 1 : t.shape[axis];
    if (!rest.empty()) rest[axis] = 0;
    std::size_t k = 0;
    walk<2>(index.shape, {rest, other}, [&](const auto& from, std::int64_t count, const auto& steps) {
        for (std::int64_t i = 0; i < count; ++i, ++k) {
            const auto position = static_cast<std::int64_t>((*index.data)[k]);
            if (position < 0 || position >= size) // unlike x[index], these don't wrap
                fail("index", "index " + std::to_string(position) + " is out of range for dim " + std::to_string(axis) +
                                  " of shape " + text(t.shape));
            f(k, at(from[0] + i * steps[0] + position * step), at(from[1] + i * steps[1]));
        }
    });
}

} // namespace

Tensor gather(const Tensor& t, const std::vector<std::optional<Tensor>>& indices) {
    if (indices.size() > t.shape.size())
        fail("index", std::to_string(indices.size()) + " indices for shape " + text(t.shape));
    std::vector<Region> where(t.shape.size());
    for (std::size_t axis = 0; axis < where.size(); ++axis) {
        if (axis < indices.size()) where[axis].index = indices[axis];
        where[axis].count = t.shape[axis];
    }
    const Selection s = selection(t.shape, where);
    Tensor out;
    out.dtype = t.dtype;
    out.shape = s.shape;
    const std::int64_t n = elements(s.shape);
    out.data = picked(*t.data, s, n);
    if (t.pin) out.pin = picked(*t.pin, s, n);
    return out;
}

Tensor take_along(const Tensor& t, std::int64_t dim, const Tensor& index) {
    const std::size_t axis = at(axis_of(dim, std::max<std::int64_t>(t.rank(), 1)));
    check_along("torch.gather", t, axis, index);
    auto data = std::make_shared<std::vector<double>>(at(index.size()));
    auto pin = t.pin ? std::make_shared<std::vector<float>>(at(index.size())) : nullptr;
    each_along(t, axis, index, Shape(index.shape.size(), 0), [&](std::size_t k, std::size_t from, std::size_t) {
        (*data)[k] = (*t.data)[from];
        if (pin) (*pin)[k] = (*t.pin)[from];
    });
    Tensor out;
    out.dtype = t.dtype;
    out.shape = index.shape;
    out.data = std::move(data);
    out.pin = std::move(pin);
    return out;
}

Tensor scatter(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source) {
    const std::size_t axis = at(axis_of(dim, std::max<std::int64_t>(t.rank(), 1)));
    check_along("scatter", t, axis, index);
    bool fits = source.scalar || source.rank() == index.rank();
    for (std::size_t a = 0; fits && !source.scalar && a < index.shape.size(); ++a)
        fits = index.shape[a] <= source.shape[a];
    if (!fits)
        fail("shape", "scatter: an index of shape " + text(index.shape) + " reads beyond a source of shape " +
                          text(source.shape));
    if (!source.scalar && source.dtype != t.dtype)
        fail("type", "scatter into " + describe(t) + " takes a source of the same dtype, not " + describe(source));
    const Tensor from = cast(source, t.dtype);
    const bool pinned = t.pin && pinnable(from);
    auto data = std::make_shared<std::vector<double>>(*t.data);
    auto pin = pinned ? std::make_shared<std::vector<float>>(*t.pin) : nullptr;
    const Shape strides = source.scalar ? Shape(index.shape.size(), 0) : strides_of(source.shape);
    each_along(t, axis, index, strides, [&](std::size_t, std::size_t to, std::size_t k) {
        (*data)[to] = (*from.data)[k];
        if (pin) (*pin)[to] = pin_at(from, k);
    });
    Tensor out = t;
    out.scalar = false;
    out.data = std::move(data);
    out.pin = std::move(pin);
    return out;
}

Tensor assign(const Tensor& t, const std::vector<Region>& where, const Tensor& value) {
    const Selection s = selection(t.shape, where);
    Tensor from = cast(value, t.dtype);
    while (from.shape.size() > s.shape.size() && from.shape.front() == 1)
        from.shape.erase(from.shape.begin()); // PyTorch drops leading ones that the region has no dims for
    if (from.shape.size() > s.shape.size() || broadcast(from.shape, s.shape, "assignment") != s.shape)
        fail("shape",
             "a value of shape " + text(value.shape) + " can't be assigned to a region of shape " + text(s.shape));
    const std::vector<std::int64_t> source = offsets_of(s.shape, strides_as(from.shape, s.shape));
    const bool pinned = t.pin && pinnable(from);
    auto data = std::make_shared<std::vector<double>>(*t.data);
    auto pin = pinned ? std::make_shared<std::vector<float>>(*t.pin) : nullptr;
    s.each([&](std::size_t k, std::size_t to) {
        (*data)[to] = (*from.data)[at(source[k])];
        if (pin) (*pin)[to] = pin_at(from, at(source[k]));
    });
    Tensor out = t;
    out.scalar = false;
    out.data = std::move(data);
    out.pin = std::move(pin);
    return out;
}

} // namespace cubridge::ir::tensor
