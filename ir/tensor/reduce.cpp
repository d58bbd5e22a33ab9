// Reductions and running sums. A pinned float32 operand is reduced a second time for the pin: accumulated in double and
// rounded once, because PyTorch's own order of additions is its kernel's business. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include "ir/tensor/promotion.h"
#include <cmath>
#include <limits>

namespace cubridge::ir::tensor {

namespace {

const char* name(ReduceOp op) {
    switch (op) {
    case ReduceOp::Sum: return "sum";
    case ReduceOp::Max: return "max";
    case ReduceOp::Min: return "min";
    case ReduceOp::Any: return "any";
    case ReduceOp::All: return "all";
    case ReduceOp::Prod: return "prod";
    }
    return "";
}

template <class T> double fold(ReduceOp op, const T* row, std::int64_t count) {
    double acc = 0;
    switch (op) {
    case ReduceOp::Sum:
        for (std::int64_t i = 0; i < count; ++i) acc += static_cast<double>(row[i]);
        return acc;
    case ReduceOp::Prod:
        acc = 1;
        for (std::int64_t i = 0; i < count; ++i) acc *= static_cast<double>(row[i]);
        return acc;
    case ReduceOp::Any:
        for (std::int64_t i = 0; i < count; ++i) acc = row[i] != 0 ? 1 : acc;
        return acc;
    case ReduceOp::All:
        acc = 1;
        for (std::int64_t i = 0; i < count; ++i) acc = row[i] != 0 ? acc : 0;
        return acc;
    case ReduceOp::Max:
    case ReduceOp::Min: {
        acc = static_cast<double>(row[0]);
        const bool max = op == ReduceOp::Max;
        for (std::int64_t i = 1; i < count; ++i) {
            const double v = static_cast<double>(row[i]);
            if (std::isnan(v) || (max ? v > acc : v < acc)) acc = std::isnan(acc) ? acc : v;
        }
        return acc;
    }
    }
    return acc;
}

template <class To, class T>
std::shared_ptr<const std::vector<To>> folded(ReduceOp op, const std::vector<T>& rows, std::int64_t outer,
                                              std::int64_t count) {
    auto out = std::make_shared<std::vector<To>>(at(outer));
    for (std::int64_t o = 0; o < outer; ++o) (*out)[at(o)] = static_cast<To>(fold(op, rows.data() + o * count, count));
    return out;
}

void check_integers(const std::vector<double>& values) {
    for (const double v : values)
        if (std::fabs(v) > static_cast<double>(kMaxInteger)) too_large(v);
}

/// float32 values that the pin of a result can be made from, whether or not `t` carries them.
bool has_pin(const Tensor& t) {
    return t.pin && t.dtype == DType::F32;
}

} // namespace

Tensor reduce(ReduceOp op, const Tensor& t, std::vector<std::int64_t> dims, bool keepdim) {
    std::vector<bool> gone(t.shape.size(), dims.empty());
    for (const std::int64_t dim : dims) {
        const std::int64_t axis = axis_of(dim, std::max<std::int64_t>(t.rank(), 1));
        if (t.shape.empty()) continue; // PyTorch takes dim 0 of a 0-d tensor
        if (gone[at(axis)]) fail("shape", std::string(name(op)) + ": dim " + std::to_string(dim) + " is given twice");
        gone[at(axis)] = true;
    }
    Shape shape, kept;
    std::vector<std::int64_t> order, inner;
    std::int64_t count = 1, outer = 1;
    for (std::size_t axis = 0; axis < t.shape.size(); ++axis) {
        const std::int64_t size = t.shape[axis];
        (gone[axis] ? inner : order).push_back(length(axis));
        (gone[axis] ? count : outer) *= size;
        if (!gone[axis]) kept.push_back(size);
        if (keepdim || !gone[axis]) shape.push_back(gone[axis] ? 1 : size);
    }
    if (count == 0 && (op == ReduceOp::Max || op == ReduceOp::Min))
        fail("shape", std::string(name(op)) + " over an axis of size 0 of a tensor of shape " + text(t.shape));
    order.insert(order.end(), inner.begin(), inner.end());
    const Tensor rows = permute(t, order);

    Tensor out;
    out.dtype = t.dtype;
    if (op == ReduceOp::Any || op == ReduceOp::All)
        out.dtype = DType::Bool;
    else if (!is_float(t.dtype) && (op == ReduceOp::Sum || op == ReduceOp::Prod))
        out.dtype = DType::I64;
    outer = elements(kept);
    const bool tested = out.dtype == DType::Bool && has_pin(rows); // a test != 0, which reads the pin
    out.data = tested ? folded<double>(op, *rows.pin, outer, count) : folded<double>(op, *rows.data, outer, count);
    if (out.dtype == DType::I64) check_integers(*out.data);
    if (has_pin(rows) && out.dtype == DType::F32) out.pin = folded<float>(op, *rows.pin, outer, count);
    out.shape = std::move(shape);
    return out;
}

Tensor cumsum(const Tensor& t, std::int64_t dim) {
    const std::int64_t axis = axis_of(dim, std::max<std::int64_t>(t.rank(), 1));
    const std::int64_t step = t.shape.empty() ? 1 : strides_of(t.shape)[at(axis)];
    const std::int64_t size = t.shape.empty() ? 1 : t.shape[at(axis)];
    const auto running = [&](const auto& from, auto& to) {
        using T = typename std::remove_reference_t<decltype(to)>::value_type;
        for (std::int64_t block = 0; block < t.size(); block += step * size)
            for (std::int64_t lane = 0; lane < step; ++lane) {
                double acc = 0;
                for (std::int64_t i = 0; i < size; ++i) {
                    const std::size_t k = at(block + lane + i * step);
                    acc += static_cast<double>(from[k]);
                    to[k] = static_cast<T>(acc);
                }
            }
    };
    Tensor out;
    out.dtype = is_float(t.dtype) ? t.dtype : DType::I64;
    out.shape = t.shape;
    std::vector<double> data(t.data->size());
    running(*t.data, data);
    if (out.dtype == DType::I64) check_integers(data);
    out.data = std::make_shared<const std::vector<double>>(std::move(data));
    if (has_pin(t)) {
        std::vector<float> pin(t.pin->size());
        running(*t.pin, pin);
        out.pin = std::make_shared<const std::vector<float>>(std::move(pin));
    }
    return out;
}

} // namespace cubridge::ir::tensor
