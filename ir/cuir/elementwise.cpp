// Elementwise operators and row statistics on values, through the one table of operators.
// SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/value.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::cuir {
namespace {

constexpr int kOperands = 3;

Number number_of(const Value& v) {
    if (v.tag == Value::Tag::Array) return v.array().number;
    return v.tag == Value::Tag::Bool ? Number::Bool : v.tag == Value::Tag::Int ? Number::Int : Number::Real;
}

/// What the result holds, given what the operands hold.
Number result_of(const OpInfo& op, const Value* x, int count) {
    if (op.op == Op::Where) return std::max(number_of(x[1]), number_of(x[2]));
    Number most = Number::Bool;
    for (int k = 0; k < count; ++k) most = std::max(most, number_of(x[k]));
    if (op.op == Op::And || op.op == Op::Or || op.op == Op::Xor) return most;
    if (op.bool_out) return Number::Bool;
    if (op.real_in || !op.integer) return Number::Real;
    const bool counts = op.op != Op::Min && op.op != Op::Max; // True + True is 2, the larger of two truths is a truth
    return most == Number::Bool && counts ? Number::Int : most;
}

struct Stretch {
    int rows = 1, cols = 1;
    bool array = false;

    Stretch(const OpInfo& op, const Value* x, int count) {
        for (int k = 0; k < count; ++k) {
            if (x[k].is_scalar()) continue;
            if (x[k].tag != Value::Tag::Array) trouble("type", std::string(op.name) + " of " + describe(x[k]));
            const auto& a = x[k].array();
            array = true;
            if ((a.rows != 1 && rows != 1 && a.rows != rows) || (a.cols != 1 && cols != 1 && a.cols != cols))
                trouble("shape", std::string(op.name) + " of " + describe(x[0]) + " and " + describe(x[count - 1]));
            rows = std::max(rows, a.rows);
            cols = std::max(cols, a.cols);
            if (std::int64_t{rows} * cols > kElements) trouble("limit", "a tile of more than 2^18 elements");
        }
    }
};

Value scalar(Number number, double x) {
    if (number == Number::Real) return Value::number(x);
    return number == Number::Int ? Value::integer(static_cast<std::int64_t>(x)) : Value::boolean(x != 0);
}

/// Calls f(out, in) for each element, `in` holding one double an operand.
template <class F> Value each(const OpInfo& op, const Value* x, int count, Number number, F f) {
    const Stretch to(op, x, count);
    double in[kOperands];
    if (!to.array) {
        for (int k = 0; k < count; ++k) in[k] = x[k].as_real();
        return scalar(number, f(in));
    }
    Ref<Array> out(new Array(number, to.rows, to.cols));
    const double* from[kOperands];
    double held[kOperands];
    int by_row[kOperands], by_col[kOperands];
    for (int k = 0; k < count; ++k) {
        by_row[k] = by_col[k] = 0;
        if (x[k].is_scalar()) {
            held[k] = x[k].as_real();
            from[k] = &held[k];
        } else {
            const auto& a = x[k].array();
            from[k] = a.data;
            by_row[k] = a.rows == 1 ? 0 : a.cols;
            by_col[k] = a.cols == 1 ? 0 : 1;
        }
    }
    double* to_data = out->data;
    for (int r = 0; r < to.rows; ++r)
        for (int c = 0; c < to.cols; ++c) {
            for (int k = 0; k < count; ++k) in[k] = from[k][r * by_row[k] + c * by_col[k]];
            *to_data++ = f(in);
        }
    return Value::of(out);
}

/// Scalars of integers keep all 64 bits.
Value integers(const OpInfo& op, const Value* x, int count, Number number) {
    std::int64_t in[kOperands];
    for (int k = 0; k < count; ++k) in[k] = x[k].index;
    const auto y = op.integer(in);
    return number == Number::Bool ? Value::boolean(y != 0) : Value::integer(y);
}

} // namespace

Value apply(Op which, const Value* x, int count) {
    const OpInfo& op = info(which);
    const Number number = result_of(op, x, count);
    bool whole = op.integer != nullptr && !op.real_in, plain = true;
    for (int k = 0; k < count; ++k) {
        whole = whole && number_of(x[k]) != Number::Real;
        plain = plain && x[k].is_scalar();
    }
    if (whole && plain) return integers(op, x, count, number);
    if (which == Op::Where) return each(op, x, count, number, [](const double* v) { return v[0] != 0 ? v[1] : v[2]; });
    if (!op.real) { // logic
        if (!whole) trouble("type", std::string(op.name) + " of a real number");
        return each(op, x, count, number, [&](const double* v) {
            std::int64_t in[kOperands];
            for (int k = 0; k < count; ++k) in[k] = static_cast<std::int64_t>(v[k]);
            return static_cast<double>(op.integer(in));
        });
    }
    if (whole && (which == Op::FloorDiv || which == Op::Mod || which == Op::Pow))
        return each(op, x, count, number, [&](const double* v) {
            const std::int64_t in[2] = {static_cast<std::int64_t>(v[0]), static_cast<std::int64_t>(v[1])};
            return static_cast<double>(op.integer(in));
        });
    return each(op, x, count, number, [f = op.real](const double* v) { return f(v); });
}

Value apply_f32(Op which, const Value* x, int count) {
    const OpInfo& op = info(which);
    if (!op.f32) return apply(which, x, count);
    const Number number = op.bool_out ? Number::Bool : Number::Real;
    return each(op, x, count, number, [&](const double* v) {
        float in[kOperands];
        for (int k = 0; k < count; ++k) in[k] = static_cast<float>(v[k]);
        return static_cast<double>(op.f32(in));
    });
}

Value tanh_small(const Value& x) {
    constexpr double most = 0.5 * (1 + 1e-6); // a test in other units rounds
    return each(info(Op::Tanh), &x, 1, Number::Real, [](const double* v) {
        return std::fabs(v[0]) <= most ? std::tanh(v[0]) : std::numeric_limits<double>::quiet_NaN();
    });
}

Value logistic_small(const Value& x) {
    constexpr double most = 31 * (1 + 1e-6);
    return each(info(Op::Sigmoid), &x, 1, Number::Real, [](const double* v) {
        return std::fabs(v[0]) <= most ? 1 / (std::exp2(v[0]) + 1) : std::numeric_limits<double>::quiet_NaN();
    });
}

Value to_real(const Value& x) {
    return each(info(Op::Add), &x, 1, Number::Real, [](const double* v) { return v[0]; });
}

Value to_integer(const Value& x) {
    return each(info(Op::Trunc), &x, 1, Number::Int, [](const double* v) {
        if (!(std::fabs(v[0]) < 9007199254740992.0)) trouble("range", "i32 of a number that no integer is near");
        return std::trunc(v[0]);
    });
}

Value largest(const Array& x) {
    Ref<Array> out(new Array(x.number, x.rows, 1));
    for (int r = 0; r < x.rows; ++r) {
        double most = x.data[r * x.cols];
        for (int c = 1; c < x.cols; ++c) {
            const double v = x.data[r * x.cols + c];
            if (v > most || v != v) most = v;
        }
        out->data[r] = most;
    }
    return Value::of(out);
}

Value total(const Array& x) {
    Ref<Array> out(new Array(x.number == Number::Real ? Number::Real : Number::Int, x.rows, 1));
    for (int r = 0; r < x.rows; ++r) {
        double sum = 0;
        for (int c = 0; c < x.cols; ++c) sum += x.data[r * x.cols + c];
        out->data[r] = sum;
    }
    return Value::of(out);
}

} // namespace cubridge::ir::cuir
