// Rows that make tensors, and the constants of the modules. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <cmath>
#include <limits>

namespace cubridge::ir::spec {

namespace {

DType type_of_number(const Value& v) {
    if (v.is<bool>() || (v.is<Expr>() && v.as<Expr>()->type == Type::Bool)) return DType::Bool;
    if (v.is<std::int64_t>() || (v.is<Expr>() && v.as<Expr>()->type == Type::Int)) return DType::I64;
    return DType::F32;
}

Value filled(Interpreter& in, const Values& sizes, const Value& v, DType t) {
    return in.domain().full(sizes, v, t);
}

Value ones(Interpreter& in, Args& a) {
    return filled(in, a.sizes(0), 1, a.dtype(1, DType::F32));
}
Value zeros(Interpreter& in, Args& a) {
    return filled(in, a.sizes(0), 0, a.dtype(1, DType::F32));
}

Value full(Interpreter& in, Args& a) {
    Value v = a[1];
    if (v.is<TensorRef>()) v = in.domain().item(v.as<TensorRef>(), "full");
    if (!v.number()) a.wrong(1, "a number");
    return filled(in, a.sizes(0), v, a.dtype(2, type_of_number(v)));
}

Value like(Interpreter& in, Args& a, const Value& v, std::size_t dtype) {
    const TensorRef t = a.tensor(0);
    return filled(in, in.domain().shape(t), v, a.dtype(dtype, t->dtype));
}
Value ones_like(Interpreter& in, Args& a) {
    return like(in, a, 1, 1);
}
Value zeros_like(Interpreter& in, Args& a) {
    return like(in, a, 0, 1);
}
Value full_like(Interpreter& in, Args& a) {
    return like(in, a, a[1], 2);
}
Value new_zeros(Interpreter& in, Args& a) {
    return filled(in, a.sizes(1), 0, a.dtype(2, a.tensor(0)->dtype));
}
Value new_ones(Interpreter& in, Args& a) {
    return filled(in, a.sizes(1), 1, a.dtype(2, a.tensor(0)->dtype));
}
Value new_full(Interpreter& in, Args& a) {
    return filled(in, a.sizes(1), a[2], a.dtype(3, a.tensor(0)->dtype));
}

Value arange(Interpreter& in, Args& a) {
    Value start = 0, stop = a[0], step = a.given(2) ? a[2] : Value(1);
    if (a.given(1)) start = a[0], stop = a[1];
    DType t = DType::I64;
    for (Value* v : {&start, &stop, &step}) {
        if (v->is<TensorRef>()) *v = in.domain().item(v->as<TensorRef>(), "arange");
        if (!v->number()) a.wrong(0, "a number");
        if (v->is<double>() || (v->is<Expr>() && v->as<Expr>()->type == Type::Real)) t = DType::F32;
    }
    if (a.dtype(3, t) == DType::Bool) a.wrong(3, "a dtype of numbers");
    return in.domain().arange(start, stop, step, a.dtype(3, t));
}

Value eye(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const Value n = a.sizes(0)[0], m = a.given(1) ? a.sizes(1)[0] : n;
    const TensorRef i = unsqueeze(d, d.arange(0, n, 1, DType::I64), 1), j = d.arange(0, m, 1, DType::I64);
    return d.cast(d.apply(Op::Eq, {i, j}), a.dtype(2, DType::F32));
}

// Nested lists of numbers, row by row.
void flatten(Interpreter& in, const Value& v, std::size_t depth, std::vector<std::int64_t>& shape, Values& out) {
    if (!v.is<Sequence>()) {
        if (depth != shape.size()) fail("shape", "torch.tensor() of a ragged list", in.span());
        out.push_back(v.is<TensorRef>() ? in.domain().item(v.as<TensorRef>(), "torch.tensor") : v);
        if (!out.back().number()) fail("type", "torch.tensor() takes numbers, this is " + kind_of(v), in.span());
        return;
    }
    const auto& items = *v.as<Sequence>().items;
    if (depth == shape.size()) shape.push_back(static_cast<std::int64_t>(items.size()));
    if (shape[depth] != static_cast<std::int64_t>(items.size()))
        fail("shape", "torch.tensor() of a ragged list", in.span());
    if (depth >= kMaxIndex)
        fail("limit", "lists are nested more than " + std::to_string(kMaxIndex) + " deep", in.span());
    in.step(items.size());
    for (const Value& i : items) flatten(in, i, depth + 1, shape, out);
}

Value tensor(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    if (a[0].is<TensorRef>()) {
        const TensorRef t = a[0].as<TensorRef>();
        return a.given(1) ? d.cast(t, a.dtype(1, t->dtype)) : t;
    }
    if (a[0].number()) return d.full({}, a[0], a.dtype(1, type_of_number(a[0])));
    if (!a[0].is<Sequence>()) a.wrong(0, "a number or a list of numbers");
    std::vector<std::int64_t> shape;
    Values numbers;
    flatten(in, a[0], 0, shape, numbers);
    DType t = numbers.empty() ? DType::F32 : DType::Bool;
    for (const Value& v : numbers) t = promote(t, type_of_number(v));
    return d.from_numbers(shape, numbers, a.dtype(1, t));
}

Value scalar_tensor(Interpreter& in, Args& a) {
    if (!a[0].number()) a.wrong(0, "a number");
    return in.domain().full({}, a[0], a.dtype(1, DType::F32));
}

constexpr Routine rows[] = {
    {"ones", kTorch, "*size, dtype=None", ones},
    {"zeros", kTorch, "*size, dtype=None", zeros},
    {"empty", kTorch, "*size, dtype=None", zeros, "holds zeros"},
    {"full", kTorch, "size, fill_value, dtype=None", full},
    {"ones_like", kTorch, "input, dtype=None", ones_like},
    {"zeros_like", kTorch, "input, dtype=None", zeros_like},
    {"empty_like", kTorch, "input, dtype=None", zeros_like, "holds zeros"},
    {"full_like", kTorch, "input, fill_value, dtype=None", full_like},
    {"new_zeros", kMethod, "input, *size, dtype=None", new_zeros},
    {"new_ones", kMethod, "input, *size, dtype=None", new_ones},
    {"new_full", kMethod, "input, size, fill_value, dtype=None", new_full},
    {"arange", kTorch, "start, end=?, step=?, *, dtype=None", arange},
    {"eye", kTorch, "n, m=?, *, dtype=None", eye},
    {"tensor", kTorch, "data, *, dtype=None", tensor},
    {"as_tensor", kTorch, "data, dtype=None", tensor},
    {"scalar_tensor", kTorch, "s, *, dtype=None", scalar_tensor},
};

} // namespace

std::span<const Routine> rows_making() {
    return rows;
}

std::optional<Value> find_constant(std::string_view module, std::string_view name) {
    if (module == "torch" || module == "math") {
        if (name == "inf") return Value(std::numeric_limits<double>::infinity());
        if (name == "nan") return Value(std::numeric_limits<double>::quiet_NaN());
        if (name == "pi") return Value(3.14159265358979323846);
        if (name == "e") return Value(2.71828182845904523536);
        if (name == "tau" && module == "math") return Value(6.28318530717958647692);
    }
    if (module == "torch") {
        if (const auto t = dtype_from_torch(name)) return Value(*t);
        static constexpr const char* opaque[] = {
            "Tensor",      "device", "no_grad", "inference_mode", "contiguous_format", "strided", "LongTensor",
            "FloatTensor", "dtype",  "jit",     "compiler"};
        for (const char* o : opaque)
            if (name == o) return Value(Opaque{"a name of torch without a value"});
    }
    if (module.starts_with("finfo.")) {
        const auto t = dtype_from_short(module.substr(6));
        if (!t) return std::nullopt;
        struct Row {
            DType t;
            double max, eps, tiny;
        };
        static constexpr Row floats[] = {
            {DType::F16, 65504, 0x1p-10, 0x1p-14},
            {DType::BF16, 0x1.fep127, 0x1p-7, 0x1p-126},
            {DType::F32, std::numeric_limits<float>::max(), 0x1p-23, 0x1p-126},
            {DType::F64, std::numeric_limits<double>::max(), 0x1p-52, std::numeric_limits<double>::min()}};
        for (const Row& r : floats) {
            if (r.t != *t) continue;
            if (name == "max") return Value(r.max);
            if (name == "min") return Value(-r.max);
            if (name == "eps") return Value(r.eps);
            if (name == "tiny" || name == "smallest_normal") return Value(r.tiny);
        }
        if (is_integer(*t)) {
            const int bits = size_in_bytes(*t) * 8;
            const bool sign = *t != DType::U8;
            const std::int64_t top = sign ? static_cast<std::int64_t>((std::uint64_t{1} << (bits - 1)) - 1) : 255;
            if (name == "max") return Value(top);
            if (name == "min") return Value(sign ? -top - 1 : std::int64_t{0});
        }
    }
    return std::nullopt;
}

} // namespace cubridge::ir::spec
