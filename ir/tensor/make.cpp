// Tensors from values, and casts. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include "ir/tensor/promotion.h"
#include <cmath>

namespace cubridge::ir::tensor {

namespace {

double checked(double value, DType dtype) {
    if (dtype == DType::Bool) return value != 0 ? 1 : 0;
    if (is_float(dtype)) return value;
    if (std::fabs(value) > static_cast<double>(kMaxInteger)) too_large(value); // as written, not the end of a cast
    return fit(truncated(value), dtype);
}

Tensor made(Shape shape, std::vector<double> values, DType dtype, bool pinned) {
    for (double& v : values) v = checked(v, dtype);
    Tensor t;
    t.dtype = dtype;
    t.shape = std::move(shape);
    t.data = std::make_shared<const std::vector<double>>(std::move(values));
    if (pinned) t.pin = pin_of(t);
    return t;
}

} // namespace

Tensor full(Shape shape, double value, DType dtype, bool pinned) {
    std::vector<double> values(at(elements(shape)), value);
    return made(std::move(shape), std::move(values), dtype, pinned && dtype == DType::F32);
}

Tensor number(double value, DType dtype) {
    Tensor t = made({}, {value}, dtype, is_float(dtype));
    t.scalar = true;
    return t;
}

Tensor from_values(Shape shape, std::vector<double> values, DType dtype, bool pinned) {
    if (elements(shape) != length(values.size()))
        fail("shape", std::to_string(values.size()) + " values don't fill a tensor of shape " + text(shape));
    return made(std::move(shape), std::move(values), dtype, pinned && dtype == DType::F32);
}

Tensor arange(double start, double step, std::int64_t count, DType dtype) {
    std::vector<double> values(at(elements({count})));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = start + step * static_cast<double>(i);
    return made({count}, std::move(values), dtype, dtype == DType::F32);
}

Tensor cast(const Tensor& t, DType dtype) {
    Tensor out = t;
    out.dtype = dtype;
    if (is_float(dtype)) {
        // A Python number's pin is only its rounding, whatever it is cast to.
        if (!t.scalar && (dtype != DType::F32 || !pinnable(t)))
            out.pin = nullptr;
        else
            out.pin = pin_of(t);
        return out;
    }
    auto data = std::make_shared<std::vector<double>>(t.data->size());
    for (std::size_t i = 0; i < data->size(); ++i) {
        const double value = t.pin && !t.scalar ? double{(*t.pin)[i]} : (*t.data)[i];
        (*data)[i] = dtype == DType::Bool ? (value != 0 ? 1 : 0) : fit(truncated(value), dtype);
    }
    out.data = std::move(data);
    out.pin = nullptr;
    return out;
}

} // namespace cubridge::ir::tensor
