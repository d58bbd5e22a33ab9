// Rows that work element by element. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <cmath>
#include <limits>

namespace cubridge::ir::spec {

DType floating(DType t) {
    return is_float(t) ? t : DType::F32;
}

namespace {

template <Op op> Value unary(Interpreter& in, Args& a) {
    return in.domain().apply(op, {a.tensor(0)});
}
// What PyTorch has for numbers only.
template <Op op> Value of_numbers(Interpreter& in, Args& a) {
    if (a.tensor(0)->dtype == DType::Bool) a.wrong(0, "a tensor of numbers");
    return in.domain().apply(op, {a.tensor(0)});
}
template <Op op> Value binary(Interpreter& in, Args& a) {
    if (!a[0].is<TensorRef>() && !a[1].is<TensorRef>()) return in.domain().apply(op, {a.tensor(0), a.tensor(1)});
    return in.elementwise(op, {a[0], a[1]});
}

// add and sub take alpha.
template <Op op> Value additive(Interpreter& in, Args& a) {
    if (!a.given(2)) return in.elementwise(op, {Value(a.tensor(0)), a[1]});
    Domain& d = in.domain();
    const TensorRef x = a.tensor(0), y = in.tensor(a[1]);
    const DType type = d.apply(Op::Max, {x, y})->dtype; // in which alpha * other is computed
    if (!a[2].number() || (a[2].is<double>() && !is_float(type))) a.wrong(2, "an int for tensors of integers");
    if (op == Op::Sub && (x->dtype == DType::Bool || y->dtype == DType::Bool)) a.wrong(1, "no boolean tensor");
    const TensorRef scaled = d.cast(in.tensor(in.elementwise(Op::Mul, {Value(d.cast(y, type)), a[2]})), type);
    return d.apply(op, {x, scaled});
}

// torch.min and torch.max: of two tensors, of all elements, or along a dim (values only where that is unambiguous).
template <Op op, ReduceOp whole> Value extremum(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef x = a.tensor(0);
    if (a[1].is<TensorRef>()) return d.apply(op, {x, a[1].as<TensorRef>()});
    if (!a.given(1)) return d.reduce(whole, x, {}, false);
    const int dim = a.dim(1, d.rank(x));
    if (d.rank(x) == 0) return make_tuple({x, d.full({}, 0, DType::I64)});
    return make_tuple({d.reduce(whole, x, {dim}, a.flag(2)), arg_extremum(d, x, dim, a.flag(2), op == Op::Min)});
}

Value div(Interpreter& in, Args& a) {
    const Value q = in.elementwise(Op::Div, {Value(a.tensor(0)), a[1]});
    if (!a.given(2)) return q;
    const std::string& mode = a.name(2);
    if (mode == "floor") return in.elementwise(Op::FloorDiv, {Value(a.tensor(0)), a[1]});
    if (mode != "trunc") a.wrong(2, "\"floor\", \"trunc\" or None");
    const TensorRef x = a.tensor(0), y = in.tensor(a[1]);
    if (x->dtype == DType::Bool && y->dtype == DType::Bool) a.wrong(0, "a tensor of numbers");
    if (!is_float(x->dtype) && !is_float(y->dtype))
        return in.domain().cast(in.domain().apply(Op::Trunc, {q.as<TensorRef>()}), promote(x->dtype, y->dtype));
    return in.domain().apply(Op::Trunc, {q.as<TensorRef>()});
}

Value clamp(Interpreter& in, Args& a) {
    Value v = a.tensor(0);
    if (!a.given(1) && !a.given(2)) fail("type", "clamp() needs min or max", in.span());
    if (a.given(1)) v = in.elementwise(Op::Max, {v, a[1]});
    if (a.given(2)) v = in.elementwise(Op::Min, {v, a[2]});
    return v;
}
Value clamp_min(Interpreter& in, Args& a) {
    return in.elementwise(Op::Max, {Value(a.tensor(0)), a[1]});
}
Value clamp_max(Interpreter& in, Args& a) {
    return in.elementwise(Op::Min, {Value(a.tensor(0)), a[1]});
}

Value where(Interpreter& in, Args& a) {
    if (!a.given(1))
        fail("unsupported", "torch.where(condition) alone gives positions, whose number hangs on data", in.span(),
             "use the form with three arguments");
    return in.domain().apply(Op::Where, {a.tensor(0), in.tensor(a[1]), in.tensor(a[2])});
}
Value method_where(Interpreter& in, Args& a) {
    return in.domain().apply(Op::Where, {a.tensor(1), a.tensor(0), in.tensor(a[2])});
}

bool same_known_shape(Domain& d, const TensorRef& x, const TensorRef& y) { // sizes of a launch count as equal
    const Values a = d.shape(x), b = d.shape(y);
    bool same = a.size() == b.size();
    for (std::size_t k = 0; same && k < a.size(); ++k)
        same =
            !a[k].is<std::int64_t>() || !b[k].is<std::int64_t>() || a[k].as<std::int64_t>() == b[k].as<std::int64_t>();
    return same;
}

Value masked_fill(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef x = a.tensor(0), mask = a.tensor(1);
    if (mask->dtype != DType::Bool) a.wrong(1, "a boolean tensor");
    const TensorRef r = d.apply(Op::Where, {mask, d.cast(in.tensor(a[2]), x->dtype), x});
    if (std::string_view(a.routine().name).ends_with('_') && !same_known_shape(d, r, x))
        fail("shape", "the mask does not broadcast to the tensor that is changed", in.span());
    return r;
}

Value relu(Interpreter& in, Args& a) {
    if (a.tensor(0)->dtype == DType::Bool) a.wrong(0, "a tensor of numbers");
    return in.elementwise(Op::Max, {Value(a.tensor(0)), Value(0)});
}
Value reciprocal(Interpreter& in, Args& a) {
    return in.elementwise(Op::Div, {Value(1), Value(a.tensor(0))});
}
Value square(Interpreter& in, Args& a) {
    TensorRef x = a.tensor(0);
    if (x->dtype == DType::Bool) x = in.domain().cast(x, DType::I64);
    return in.domain().apply(Op::Mul, {x, x});
}
Value silu(Interpreter& in, Args& a) {
    const TensorRef x = a.tensor(0);
    return in.domain().apply(Op::Mul, {x, in.domain().apply(Op::Sigmoid, {x})});
}
Value gelu(Interpreter& in, Args& a) {
    const Value x = a.tensor(0);
    const std::string how = a.given(1) ? a.name(1) : "none";
    if (how == "tanh") {
        const Value cube = in.elementwise(Op::Mul, {in.elementwise(Op::Mul, {x, x}), x});
        const Value inner =
            in.elementwise(Op::Mul, {Value(0.79788456080286535588),
                                     in.elementwise(Op::Add, {x, in.elementwise(Op::Mul, {Value(0.044715), cube})})});
        const Value t = in.elementwise(Op::Add, {Value(1), Value(in.domain().apply(Op::Tanh, {in.tensor(inner)}))});
        return in.elementwise(Op::Mul, {in.elementwise(Op::Mul, {Value(0.5), x}), t});
    }
    if (how != "none") a.wrong(1, "\"none\" or \"tanh\"");
    const TensorRef e =
        in.domain().apply(Op::Erf, {in.tensor(in.elementwise(Op::Mul, {x, Value(0.70710678118654752440)}))});
    return in.elementwise(Op::Mul,
                          {in.elementwise(Op::Mul, {Value(0.5), x}), in.elementwise(Op::Add, {Value(1), Value(e)})});
}
Value softplus(Interpreter& in, Args& a) { // log(1 + exp(x)), without overflow
    Domain& d = in.domain();
    const Value x = a.tensor(0);
    if (a[1].is<double>() && a[1].as<double>() != 1)
        fail("unsupported", "softplus() with beta", in.span(), "write log1p(exp(beta * x)) / beta");
    const TensorRef small =
        d.apply(Op::Log1p, {d.apply(Op::Exp, {d.apply(Op::Neg, {d.apply(Op::Abs, {in.tensor(x)})})})});
    return in.elementwise(Op::Add, {in.elementwise(Op::Max, {x, Value(0)}), Value(small)});
}
Value logsigmoid(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef x = a.tensor(0);
    const TensorRef small = d.apply(Op::Log1p, {d.apply(Op::Exp, {d.apply(Op::Neg, {d.apply(Op::Abs, {x})})})});
    return in.elementwise(Op::Sub, {in.elementwise(Op::Min, {Value(x), Value(0)}), Value(small)});
}
Value leaky_relu(Interpreter& in, Args& a) {
    const Value x = a.tensor(0);
    return in.elementwise(Op::Where, {in.elementwise(Op::Gt, {x, Value(0)}), x, in.elementwise(Op::Mul, {x, a[1]})});
}
Value elu(Interpreter& in, Args& a) {
    const TensorRef x = a.tensor(0);
    const Value low = in.elementwise(Op::Mul, {a[1], Value(in.domain().apply(Op::Expm1, {x}))});
    return in.elementwise(Op::Where, {in.elementwise(Op::Gt, {Value(x), Value(0)}), Value(x), low});
}
Value sign(Interpreter& in, Args& a) {
    const TensorRef x = a.tensor(0);
    Domain& d = in.domain();
    if (x->dtype == DType::Bool) return x;
    const auto above = d.cast(in.tensor(in.elementwise(Op::Gt, {Value(x), Value(0)})), x->dtype);
    const auto below = d.cast(in.tensor(in.elementwise(Op::Lt, {Value(x), Value(0)})), x->dtype);
    return d.apply(Op::Sub, {above, below});
}

Value isnan(Interpreter& in, Args& a) {
    return in.domain().apply(Op::Ne, {a.tensor(0), a.tensor(0)});
}
Value isinf(Interpreter& in, Args& a) {
    const TensorRef x = a.tensor(0);
    return in.elementwise(Op::Eq,
                          {Value(in.domain().apply(Op::Abs, {x})), Value(std::numeric_limits<double>::infinity())});
}
Value isfinite(Interpreter& in, Args& a) {
    const TensorRef x = a.tensor(0);
    return in.elementwise(Op::Lt,
                          {Value(in.domain().apply(Op::Abs, {x})), Value(std::numeric_limits<double>::infinity())});
}
template <bool positive> Value isinf_sided(Interpreter& in, Args& a) {
    const double inf = std::numeric_limits<double>::infinity();
    return in.elementwise(Op::Eq, {Value(a.tensor(0)), Value(positive ? inf : -inf)});
}

Value nan_to_num(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef x = a.tensor(0);
    if (!is_float(x->dtype)) return x;
    const double inf = std::numeric_limits<double>::infinity();
    const auto limit = find_constant(std::string("finfo.") + short_name(x->dtype), "max");
    const double most = limit ? limit->as<double>() : static_cast<double>(std::numeric_limits<float>::max());
    const auto other = [&](std::size_t k, double fallback) {
        return d.cast(in.tensor(a.given(k) ? a[k] : Value(fallback)), x->dtype);
    };
    TensorRef r = d.apply(Op::Where, {d.apply(Op::Ne, {x, x}), other(1, 0), x});
    r = d.apply(Op::Where, {in.tensor(in.elementwise(Op::Eq, {Value(x), Value(inf)})), other(2, most), r});
    return d.apply(Op::Where, {in.tensor(in.elementwise(Op::Eq, {Value(x), Value(-inf)})), other(3, -most), r});
}

template <Op op> Value logical(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef x = d.cast(a.tensor(0), DType::Bool);
    if constexpr (op == Op::Not)
        return d.apply(op, {x});
    else
        return d.apply(op, {x, d.cast(a.tensor(1), DType::Bool)});
}

Value cast_to(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef x = a.tensor(0);
    for (const Value& v : *a[1].as<Sequence>().items) { // dtype, device, or another tensor, in any order
        if (v.is<DType>()) return d.cast(x, v.as<DType>());
        if (v.is<TensorRef>()) return d.cast(x, v.as<TensorRef>()->dtype);
    }
    return a.given(2) ? d.cast(x, a.dtype(2, x->dtype)) : x;
}
template <DType t> Value cast_fixed(Interpreter& in, Args& a) {
    return in.domain().cast(a.tensor(0), t);
}
Value type_as(Interpreter& in, Args& a) {
    return in.domain().cast(a.tensor(0), a.tensor(1)->dtype);
}
Value same(Interpreter&, Args& a) {
    return a.tensor(0);
}
// A tensor of its own: what is assigned to it later is not seen through the original.
Value clone(Interpreter& in, Args& a) {
    return in.domain().reshape(a.tensor(0), in.domain().shape(a.tensor(0)));
}

constexpr unsigned kTM = kTorch | kMethod, kTMF = kTorch | kMethod | kFunctional;

constexpr Routine rows[] = {
    {"abs", kTM, "input", of_numbers<Op::Abs>},
    {"neg", kTM, "input", unary<Op::Neg>},
    {"negative", kTM, "input", unary<Op::Neg>},
    {"sqrt", kTM, "input", unary<Op::Sqrt>},
    {"rsqrt", kTM, "input", unary<Op::Rsqrt>},
    {"exp", kTM, "input", unary<Op::Exp>},
    {"exp2", kTM, "input", unary<Op::Exp2>},
    {"expm1", kTM, "input", unary<Op::Expm1>},
    {"log", kTM, "input", unary<Op::Log>},
    {"log2", kTM, "input", unary<Op::Log2>},
    {"log10", kTM, "input", unary<Op::Log10>},
    {"log1p", kTM, "input", unary<Op::Log1p>},
    {"tanh", kTMF, "input", unary<Op::Tanh>},
    {"sigmoid", kTMF, "input", unary<Op::Sigmoid>},
    {"sin", kTM, "input", unary<Op::Sin>},
    {"cos", kTM, "input", unary<Op::Cos>},
    {"tan", kTM, "input", unary<Op::Tan>},
    {"atan", kTM, "input", unary<Op::Atan>},
    {"erf", kTM, "input", unary<Op::Erf>},
    {"floor", kTM, "input", of_numbers<Op::Floor>},
    {"ceil", kTM, "input", of_numbers<Op::Ceil>},
    {"trunc", kTM, "input", of_numbers<Op::Trunc>},
    {"round", kTM, "input", of_numbers<Op::Round>},
    {"reciprocal", kTM, "input", reciprocal},
    {"square", kTM, "input", square},
    {"sign", kTM, "input", sign},
    {"relu", kTMF, "input", relu},
    {"silu", kFunctional, "input", silu},
    {"gelu", kFunctional, "input, approximate=?", gelu},
    {"softplus", kFunctional, "input, beta=1.0", softplus},
    {"logsigmoid", kFunctional, "input", logsigmoid},
    {"leaky_relu", kFunctional, "input, negative_slope=0.01", leaky_relu},
    {"elu", kFunctional, "input, alpha=1.0", elu},
    {"isnan", kTM, "input", isnan},
    {"isinf", kTM, "input", isinf},
    {"isposinf", kTM, "input", isinf_sided<true>},
    {"isneginf", kTM, "input", isinf_sided<false>},
    {"isfinite", kTM, "input", isfinite},
    {"nan_to_num", kTM, "input, nan=?, posinf=?, neginf=?", nan_to_num},
    {"add", kTM, "input, other, *, alpha=?", additive<Op::Add>},
    {"sub", kTM, "input, other, *, alpha=?", additive<Op::Sub>},
    {"subtract", kTM, "input, other, *, alpha=?", additive<Op::Sub>},
    {"mul", kTM, "input, other", binary<Op::Mul>},
    {"multiply", kTM, "input, other", binary<Op::Mul>},
    {"div", kTM, "input, other, *, rounding_mode=?", div},
    {"true_divide", kTM, "input, other", binary<Op::Div>},
    {"divide", kTM, "input, other, *, rounding_mode=?", div},
    {"floor_divide", kTM, "input, other", binary<Op::FloorDiv>},
    {"remainder", kTM, "input, other", binary<Op::Mod>},
    {"pow", kTM, "input, exponent", binary<Op::Pow>},
    {"atan2", kTM, "input, other", binary<Op::Atan2>},
    {"maximum", kTM, "input, other", binary<Op::Max>},
    {"minimum", kTM, "input, other", binary<Op::Min>},
    {"max", kTM, "input, dim=?, keepdim=False", extremum<Op::Max, ReduceOp::Max>},
    {"min", kTM, "input, dim=?, keepdim=False", extremum<Op::Min, ReduceOp::Min>},
    {"lt", kTM, "input, other", binary<Op::Lt>},
    {"less", kTM, "input, other", binary<Op::Lt>},
    {"le", kTM, "input, other", binary<Op::Le>},
    {"less_equal", kTM, "input, other", binary<Op::Le>},
    {"gt", kTM, "input, other", binary<Op::Gt>},
    {"greater", kTM, "input, other", binary<Op::Gt>},
    {"ge", kTM, "input, other", binary<Op::Ge>},
    {"greater_equal", kTM, "input, other", binary<Op::Ge>},
    {"eq", kTM, "input, other", binary<Op::Eq>},
    {"ne", kTM, "input, other", binary<Op::Ne>},
    {"not_equal", kTM, "input, other", binary<Op::Ne>},
    {"logical_and", kTM, "input, other", logical<Op::And>},
    {"logical_or", kTM, "input, other", logical<Op::Or>},
    {"logical_xor", kTM, "input, other", logical<Op::Xor>},
    {"logical_not", kTM, "input", logical<Op::Not>},
    {"bitwise_and", kTM, "input, other", binary<Op::And>, "of booleans"},
    {"bitwise_or", kTM, "input, other", binary<Op::Or>, "of booleans"},
    {"bitwise_xor", kTM, "input, other", binary<Op::Xor>, "of booleans"},
    {"bitwise_not", kTM, "input", unary<Op::Not>, "of booleans"},
    {"where", kTorch, "condition, input=?, other=?", where},
    {"where", kMethod, "input, condition, other", method_where},
    {"masked_fill", kTM, "input, mask, value", masked_fill},
    {"masked_fill_", kMethod, "input, mask, value", masked_fill},
    {"clamp", kTM, "input, min=?, max=?", clamp},
    {"clip", kTM, "input, min=?, max=?", clamp},
    {"clamp_min", kTM, "input, min", clamp_min},
    {"clamp_max", kTM, "input, max", clamp_max},
    {"to", kMethod, "input, *other, dtype=?", cast_to},
    {"type", kMethod, "input, *other, dtype=?", cast_to},
    {"type_as", kMethod, "input, other", type_as},
    {"float", kMethod, "input", cast_fixed<DType::F32>},
    {"double", kMethod, "input", cast_fixed<DType::F64>},
    {"half", kMethod, "input", cast_fixed<DType::F16>},
    {"bfloat16", kMethod, "input", cast_fixed<DType::BF16>},
    {"int", kMethod, "input", cast_fixed<DType::I32>},
    {"long", kMethod, "input", cast_fixed<DType::I64>},
    {"bool", kMethod, "input", cast_fixed<DType::Bool>},
    {"contiguous", kMethod, "input", same},
    {"clone", kTM, "input", clone},
    {"detach", kMethod, "input", same},
    {"cpu", kMethod, "input", same},
    {"cuda", kMethod, "input", same},
};

} // namespace

std::span<const Routine> rows_elementwise() {
    return rows;
}

} // namespace cubridge::ir::spec
