// Elementwise operators with broadcasting, promotion and pins. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/tensor/layout.h"
#include "ir/tensor/promotion.h"
#include <cmath>

namespace cubridge::ir::tensor {

namespace {

bool is_comparison(Op op) {
    return op >= Op::Lt && op <= Op::Ne;
}
bool is_logic(Op op) {
    return op >= Op::And && op <= Op::Not;
}
bool rounds_to_integers(Op op) {
    return op == Op::FloorDiv || (op >= Op::Floor && op <= Op::Round);
}

/// What the operands become before the operator sees them, and what comes out.
struct Plan {
    DType common; ///< of the operands that are computed with (not Where's condition)
    DType result;
    bool numbers; ///< all operands are Python numbers: so is the result, computed in double
    bool pinned;  ///< there is a float32 value to compute, or to compare
};

[[noreturn]] void refuse(const OpInfo& o, const std::string& why) {
    fail("type", std::string(o.torch) + " " + why);
}

void check_bool(const OpInfo& o, const Plan& p, std::span<const Tensor> x) {
    const auto any_bool = [&] {
        for (const Tensor& t : x)
            if (t.dtype == DType::Bool) return true;
        return false;
    };
    switch (o.op) {
    case Op::Sub:
    case Op::Neg:
        if (any_bool()) refuse(o, "is not defined for bool tensors; `~` inverts a mask");
        break;
    case Op::FloorDiv:
    case Op::Mod:
    case Op::Pow:
        if (p.common == DType::Bool) refuse(o, "is not defined for bool tensors");
        break;
    default: break;
    }
}

Plan plan(const OpInfo& o, std::span<const Tensor> x) {
    const auto computed = o.op == Op::Where ? x.subspan(1) : x;
    Plan p{};
    p.numbers = std::all_of(x.begin(), x.end(), [](const Tensor& t) { return t.scalar; });
    p.common = result_type(computed);
    if (p.numbers) { // Python's own arithmetic: True - 1 and 2 ** -1 are numbers
        for (const Tensor& t : computed)
            if (t.dtype == DType::F64) p.common = DType::F64;
        if (p.common == DType::Bool && !o.bool_out && o.op != Op::Where) p.common = DType::I64;
        if (o.op == Op::Pow && !is_float(p.common) && (*x[1].data)[0] < 0) p.common = DType::F32;
    } else {
        check_bool(o, p, x);
        if (o.op == Op::Pow && is_integer(p.common) && x[1].scalar && (*x[1].data)[0] < 0)
            refuse(o, "of integers to a negative integer power is not defined");
    }
    if (is_logic(o.op) && is_float(p.common)) refuse(o, std::string("is not defined for ") + torch_name(p.common));
    if (o.op == Op::Where && x[0].dtype != DType::Bool)
        refuse(o, "takes a condition of dtype bool, not " + describe(x[0]));
    if (o.real_in && !is_float(p.common)) p.common = DType::F32;
    p.result = is_comparison(o.op) ? DType::Bool : p.common;
    p.pinned = p.common == DType::F32 && !p.numbers && all_pinnable(computed);
    return p;
}

// A Python number beside tensors of a narrow dtype: what fits nowhere is an error there too; -3 beside uint8 is 253.
void check_number(const OpInfo& o, double value, DType dtype) {
    const int bits = 8 * size_in_bytes(dtype);
    const double low = -std::ldexp(1, dtype == DType::U8 ? bits : bits - 1),
                 high = std::ldexp(1, dtype == DType::U8 ? bits : bits - 1);
    if (value < low || value >= high)
        fail("limit",
             std::string(o.torch) + " of " + torch_name(dtype) +
                 " and a number that does not fit it: " + std::to_string(static_cast<std::int64_t>(value)),
             {}, "use a number that fits, or convert the tensor with .long()");
}

constexpr std::size_t kMaxArity = 3;

/// Calls f(i0, i1, i2) with each operand's position for each element of the result in turn.
template <class F> void each(const std::vector<Tensor>& x, const Shape& shape, F f) {
    std::array<Shape, kMaxArity> strides;
    for (std::size_t k = 0; k < kMaxArity; ++k)
        strides[k] = k < x.size() ? strides_as(x[k].shape, shape) : Shape(shape.size(), 0);
    walk<kMaxArity>(shape, strides, [&](const auto& offsets, std::int64_t count, const auto& steps) {
        for (std::int64_t i = 0; i < count; ++i)
            f(at(offsets[0] + i * steps[0]), at(offsets[1] + i * steps[1]), at(offsets[2] + i * steps[2]));
    });
}

std::vector<double> reals(const OpInfo& o, const std::vector<Tensor>& x, const Shape& shape, std::int64_t n) {
    std::vector<double> out;
    out.reserve(at(n));
    std::array<const double*, kMaxArity> from{};
    for (std::size_t k = 0; k < kMaxArity; ++k) from[k] = x[std::min(k, x.size() - 1)].data->data();
    each(x, shape, [&](std::size_t a, std::size_t b, std::size_t c) {
        const std::size_t last = x.size();
        const double operands[kMaxArity] = {from[0][a], last > 1 ? from[1][b] : 0, last > 2 ? from[2][c] : 0};
        out.push_back(o.real(operands));
    });
    return out;
}

std::vector<double> integers(const OpInfo& o, const Plan& p, const std::vector<Tensor>& x, const Shape& shape,
                             std::int64_t n) {
    std::vector<double> out;
    out.reserve(at(n));
    const bool invert = o.op == Op::Not && is_integer(p.common);
    // Only these leave the range of exact integers, and could even wrap around into it.
    const bool grows = (o.op == Op::Mul || o.op == Op::Pow) && size_in_bytes(p.common) == 8;
    std::array<const double*, kMaxArity> from{};
    for (std::size_t k = 0; k < kMaxArity; ++k) from[k] = x[std::min(k, x.size() - 1)].data->data();
    each(x, shape, [&](std::size_t a, std::size_t b, std::size_t c) {
        const std::size_t last = x.size();
        const double operands[kMaxArity] = {from[0][a], last > 1 ? from[1][b] : 0, last > 2 ? from[2][c] : 0};
        std::int64_t whole[kMaxArity];
        for (std::size_t k = 0; k < kMaxArity; ++k) whole[k] = static_cast<std::int64_t>(operands[k]);
        if (grows && (o.op == Op::Mul || whole[1] >= 0)) {
            const double exact = o.real(operands);
            if (std::fabs(exact) > static_cast<double>(kMaxInteger)) too_large(exact);
        }
        out.push_back(fit(invert ? -1 - whole[0] : o.integer(whole), p.result));
    });
    return out;
}

std::vector<float> floats(const OpInfo& o, const std::vector<Tensor>& x, const Shape& shape, std::int64_t n) {
    std::vector<float> out;
    out.reserve(at(n));
    each(x, shape, [&](std::size_t a, std::size_t b, std::size_t c) {
        if (o.op == Op::Where) {
            out.push_back((*x[0].data)[a] != 0 ? pin_at(x[1], b) : pin_at(x[2], c));
            return;
        }
        const float operands[2] = {pin_at(x[0], a), x.size() > 1 ? pin_at(x[1], b) : 0};
        out.push_back(o.f32(operands));
    });
    return out;
}

} // namespace

Tensor apply(Op op, const std::vector<Tensor>& operands) {
    std::vector<Tensor> x = operands;
    const OpInfo& o = info(op);
    if (length(x.size()) != o.arity)
        fail("type",
             std::string(o.torch) + " takes " + std::to_string(o.arity) + " operands, not " + std::to_string(x.size()));
    Shape shape = x[0].shape;
    for (std::size_t k = 1; k < x.size(); ++k) shape = broadcast(shape, x[k].shape, o.torch);
    const std::int64_t n = elements(shape);
    const Plan p = plan(o, x);
    if (is_integer(p.common) && size_in_bytes(p.common) < 8) // uint8 < -3 compares with 253
        for (std::size_t k = op == Op::Where ? 1 : 0; k < x.size(); ++k)
            if (x[k].dtype != p.common) {
                const bool scalar = x[k].scalar;
                if (scalar) check_number(o, (*x[k].data)[0], p.common);
                x[k] = cast(x[k], p.common);
                x[k].scalar = scalar;
            }

    Tensor out;
    out.dtype = p.result;
    out.scalar = p.numbers;
    std::vector<double> data;
    if (p.pinned) {
        std::vector<float> pin = floats(o, x, shape, n);
        if (is_comparison(op) || rounds_to_integers(op)) data.assign(pin.begin(), pin.end());
        if (!is_comparison(op)) out.pin = std::make_shared<const std::vector<float>>(std::move(pin));
    }
    if (data.empty())
        data = is_float(p.common) || is_comparison(op) || op == Op::Where ? reals(o, x, shape, n)
                                                                          : integers(o, p, x, shape, n);
    out.data = std::make_shared<const std::vector<double>>(std::move(data));
    out.shape = std::move(shape);
    if (p.numbers && is_float(p.result)) out.pin = pin_of(out);
    return out;
}

} // namespace cubridge::ir::tensor
