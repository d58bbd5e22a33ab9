// PyTorch's promotion of mixed operands, and the ranges of the integer types. SPDX-License-Identifier: Apache-2.0
#include "ir/tensor/promotion.h"
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::tensor {

namespace {

using Group = std::optional<DType>;

void join(Group& group, DType t) {
    group = group ? promote(*group, t) : t;
}

Group combine(Group higher, Group lower) {
    if (!higher || !lower) return higher ? higher : lower;
    if (is_float(*higher)) return higher;
    if (*higher == DType::Bool || is_float(*lower)) return promote(*higher, *lower);
    return higher;
}

DType number_type(DType t) {
    return is_float(t) ? DType::F32 : is_integer(t) ? DType::I64 : DType::Bool;
}

} // namespace

void Promotion::add(DType dtype, std::size_t rank, bool number) {
    if (number)
        join(numbers_, number_type(dtype));
    else
        join(rank == 0 ? points_ : dims_, dtype);
}

DType Promotion::result() const {
    return combine(dims_, combine(points_, numbers_)).value_or(DType::F32);
}

DType result_type(std::span<const Tensor> x) {
    Promotion p;
    for (const Tensor& t : x) p.add(t.dtype, t.shape.size(), t.scalar);
    return p.result();
}

bool all_pinnable(std::span<const Tensor> x) {
    return std::all_of(x.begin(), x.end(), [](const Tensor& t) { return pinnable(t); });
}

std::shared_ptr<const std::vector<float>> pin_of(const Tensor& t) {
    if (t.pin) return t.pin;
    auto pin = std::make_shared<std::vector<float>>(t.data->size());
    for (std::size_t i = 0; i < pin->size(); ++i) (*pin)[i] = static_cast<float>((*t.data)[i]);
    return pin;
}

void too_large(double value) {
    fail("limit", "an integer of magnitude " + std::to_string(std::fabs(value)) + " is beyond 2^53", {},
         "use smaller constants, or floats");
}

double fit(std::int64_t value, DType dtype) {
    switch (dtype) {
    case DType::Bool: return value != 0 ? 1 : 0;
    case DType::U8: return static_cast<std::uint8_t>(value);
    case DType::I8: return static_cast<std::int8_t>(value);
    case DType::I16: return static_cast<std::int16_t>(value);
    case DType::I32: return static_cast<std::int32_t>(value);
    default:
        if (value > kMaxInteger || value < -kMaxInteger) too_large(static_cast<double>(value));
        return static_cast<double>(value);
    }
}

std::int64_t truncated(double value) {
    return narrowed(value);
}

} // namespace cubridge::ir::tensor
