// Rows that reduce along axes, and softmax with its kin. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace cubridge::ir::spec {

namespace {

// What takes an axis takes a tensor of rank 0 as well, as if it had one of size 1.
template <class F> TensorRef as_vector(Domain& d, const TensorRef& t, F f) {
    if (d.rank(t) > 0) return f(t);
    return d.reshape(f(unsqueeze(d, t, 0)), {});
}

bool has_no_elements(Domain& d, const TensorRef& t) {
    const Values sizes = d.shape(t);
    return std::any_of(sizes.begin(), sizes.end(),
                       [](const Value& s) { return s.is<std::int64_t>() && s.as<std::int64_t>() == 0; });
}

// `dim` of a reduction: nothing (all), one, or several.
std::vector<int> dims_of(Interpreter& in, Args& a, std::size_t k, std::size_t rank) {
    std::vector<int> out;
    if (!a.given(k)) {
        out.resize(rank);
        std::iota(out.begin(), out.end(), 0);
        return out;
    }
    const Values list = a[k].is<Sequence>() ? *a[k].as<Sequence>().items : Values{a[k]};
    for (const Value& v : list) {
        if (!v.is<std::int64_t>()) a.wrong(k, "an int or a tuple of ints");
        std::int64_t d = v.as<std::int64_t>();
        const auto n = std::max<std::int64_t>(1, static_cast<std::int64_t>(rank));
        if (d < -n || d >= n)
            fail("index",
                 std::string(a.routine().name) + "(): dimension " + std::to_string(d) +
                     " is out of range for a tensor of rank " + std::to_string(rank),
                 in.span());
        if (d < 0) d += n;
        if (rank == 0) continue;
        if (std::find(out.begin(), out.end(), static_cast<int>(d)) != out.end())
            fail("index", "a dimension stands twice", in.span());
        out.push_back(static_cast<int>(d));
    }
    return out;
}

template <ReduceOp op> Value reduce(Interpreter& in, Args& a) {
    TensorRef t = a.tensor(0);
    if constexpr (op == ReduceOp::Any || op == ReduceOp::All) t = in.domain().cast(t, DType::Bool);
    const auto dims = dims_of(in, a, 1, in.domain().rank(t));
    if constexpr (op == ReduceOp::Sum || op == ReduceOp::Prod)
        if (a.given(3)) {
            const DType type = a.dtype(3, t->dtype);
            return in.domain().cast(in.domain().reduce(op, in.domain().cast(t, type), dims, a.flag(2)), type);
        }
    const TensorRef out = in.domain().reduce(op, t, dims, a.flag(2));
    const bool logic = op == ReduceOp::Any || op == ReduceOp::All; // of uint8 they give uint8
    return logic && a.tensor(0)->dtype == DType::U8 ? in.domain().cast(out, DType::U8) : out;
}

Value count_of(Interpreter& in, const TensorRef& t, const std::vector<int>& dims) {
    const Values sizes = in.domain().shape(t);
    Value n = 1;
    for (const int d : dims) n = in.binary("*", n, sizes[static_cast<std::size_t>(d)]);
    return n;
}

Value mean_of(Interpreter& in, const TensorRef& t, const std::vector<int>& dims, bool keepdim) {
    if (!is_float(t->dtype)) fail("type", "mean() takes a float tensor", in.span(), "convert with .float()");
    return in.elementwise(Op::Div, {Value(in.domain().reduce(ReduceOp::Sum, t, dims, keepdim)), count_of(in, t, dims)});
}

Value mean(Interpreter& in, Args& a) {
    TensorRef t = a.tensor(0);
    if (a.given(3)) t = in.domain().cast(t, a.dtype(3, t->dtype));
    return mean_of(in, t, dims_of(in, a, 1, in.domain().rank(t)), a.flag(2));
}

Value variance(Interpreter& in, Args& a, bool root) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const auto dims = dims_of(in, a, 1, d.rank(t));
    const bool unbiased = a[3].none() || a.flag(3);
    const Value centred = in.elementwise(Op::Sub, {Value(t), mean_of(in, t, dims, true)});
    const TensorRef squares =
        d.reduce(ReduceOp::Sum, in.tensor(in.elementwise(Op::Mul, {centred, centred})), dims, a.flag(2));
    const Value less = a.given(4) ? a[4] : Value(unbiased ? 1 : 0);
    const Value by = in.elementwise(Op::Max, {in.binary("-", count_of(in, t, dims), less), Value(0)});
    const Value v = in.elementwise(Op::Div, {Value(squares), by});
    return root ? Value(d.apply(Op::Sqrt, {in.tensor(v)})) : v;
}
Value var(Interpreter& in, Args& a) {
    return variance(in, a, false);
}
Value stddev(Interpreter& in, Args& a) {
    return variance(in, a, true);
}

Value norm(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    if (a.given(1) && !(a[1].is<std::int64_t>() && a[1].as<std::int64_t>() == 2) &&
        !(a[1].is<double>() && a[1].as<double>() == 2))
        fail("unsupported", "norm() with p other than 2", in.span(), "write it with abs, pow and sum");
    const auto dims = dims_of(in, a, 2, d.rank(t));
    return d.apply(Op::Sqrt, {d.reduce(ReduceOp::Sum, d.apply(Op::Mul, {t, t}), dims, a.flag(3))});
}

Value softmax_row(Interpreter& in, Args& a) {
    TensorRef t = a.tensor(0);
    if (a.given(2)) t = in.domain().cast(t, a.dtype(2, t->dtype));
    if (!is_float(t->dtype)) fail("type", "softmax() takes a float tensor", in.span(), "convert with .float()");
    return softmax(in.domain(), t, a.dim(1, in.domain().rank(t)), false);
}
Value log_softmax_row(Interpreter& in, Args& a) {
    TensorRef t = a.tensor(0);
    if (a.given(2)) t = in.domain().cast(t, a.dtype(2, t->dtype));
    return softmax(in.domain(), t, a.dim(1, in.domain().rank(t)), true);
}
Value logsumexp_row(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    return logsumexp(in.domain(), in.domain().cast(t, floating(t->dtype)), dims_of(in, a, 1, in.domain().rank(t)),
                     a.flag(2));
}

Value cumsum(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const int dim = a.dim(1, in.domain().rank(t));
    return as_vector(in.domain(), t, [&](const TensorRef& x) { return in.domain().cumsum(x, dim); });
}
Value argsort(Interpreter& in, Args& a) {
    const TensorRef t = a.tensor(0);
    const int dim = a.dim(1, in.domain().rank(t));
    return as_vector(in.domain(), t, [&](const TensorRef& x) { return in.domain().argsort(x, dim, a.flag(2)); });
}
template <bool least> Value arg_extremum_row(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    if (t->dtype == DType::Bool) a.wrong(0, "a tensor of numbers");
    if (a.given(1)) {
        const int dim = a.dim(1, d.rank(t));
        return as_vector(d, t, [&](const TensorRef& x) { return arg_extremum(d, x, dim, a.flag(2), least); });
    }
    const TensorRef at = arg_extremum(d, d.reshape(t, {Value(-1)}), 0, false, least);
    return a.flag(2) ? d.reshape(at, Values(d.rank(t), Value(1))) : at;
}
Value count_nonzero(Interpreter& in, Args& a) {
    const TensorRef t = in.domain().cast(a.tensor(0), DType::Bool);
    return in.domain().reduce(ReduceOp::Sum, t, dims_of(in, a, 1, in.domain().rank(t)), false);
}

Value normalize(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const int dim = a.dim(2, d.rank(t));
    const std::vector<int> dims = d.rank(t) == 0 ? std::vector<int>{} : std::vector<int>{dim};
    const TensorRef n = d.apply(Op::Sqrt, {d.reduce(ReduceOp::Sum, d.apply(Op::Mul, {t, t}), dims, true)});
    return in.elementwise(Op::Div, {Value(t), in.elementwise(Op::Max, {Value(n), a[3]})});
}

std::vector<int> last_dims(Interpreter& in, Args& a, std::size_t rank) { // of normalized_shape
    const Values given = a.sizes(1), sizes = in.domain().shape(a.tensor(0));
    const std::size_t n = given.size();
    if (n == 0) fail("shape", "normalized_shape is empty", in.span(), "give the size of the last dimension");
    if (n > rank) fail("shape", "normalized_shape has more dimensions than the tensor", in.span());
    for (std::size_t k = 0; k < n; ++k)
        if (given[k].is<std::int64_t>() && sizes[rank - n + k].is<std::int64_t>() &&
            given[k].as<std::int64_t>() != sizes[rank - n + k].as<std::int64_t>())
            fail("shape", "normalized_shape is not the shape of the last dimensions", in.span(), "give x.shape[-1:]");
    for (const std::size_t k : {std::size_t{2}, std::size_t{3}})
        if (a[k].is<TensorRef>() && in.domain().rank(a.tensor(k)) != n)
            fail("shape",
                 "a weight of rank " + std::to_string(in.domain().rank(a.tensor(k))) + " for a normalized_shape of " +
                     std::to_string(n) + " dimensions",
                 in.span());
    std::vector<int> dims;
    for (std::size_t k = rank - n; k < rank; ++k) dims.push_back(static_cast<int>(k));
    return dims;
}

Value rms_norm(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const Value mean_square = mean_of(in, d.apply(Op::Mul, {t, t}), last_dims(in, a, d.rank(t)), true);
    const double eps = is_float(t->dtype) && t->dtype == DType::F64 ? 0x1p-52 : 0x1p-23;
    const TensorRef r =
        d.apply(Op::Rsqrt, {in.tensor(in.elementwise(Op::Add, {mean_square, a.given(3) ? a[3] : Value(eps)}))});
    const Value out = d.apply(Op::Mul, {t, r});
    return d.cast(in.tensor(a.given(2) ? in.elementwise(Op::Mul, {out, a[2]}) : out), t->dtype);
}

Value layer_norm(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const TensorRef t = a.tensor(0);
    const auto dims = last_dims(in, a, d.rank(t));
    const Value centred = in.elementwise(Op::Sub, {Value(t), mean_of(in, t, dims, true)});
    const Value v = mean_of(in, in.tensor(in.elementwise(Op::Mul, {centred, centred})), dims, true);
    Value out =
        in.elementwise(Op::Mul, {centred, Value(d.apply(Op::Rsqrt, {in.tensor(in.elementwise(Op::Add, {v, a[4]}))}))});
    if (a.given(2)) out = in.elementwise(Op::Mul, {out, a[2]});
    return d.cast(in.tensor(a.given(3) ? in.elementwise(Op::Add, {out, a[3]}) : out), t->dtype);
}

constexpr unsigned kTM = kTorch | kMethod, kTMF = kTorch | kMethod | kFunctional;

constexpr Routine rows[] = {
    {"sum", kTM, "input, dim=?, keepdim=False, *, dtype=?", reduce<ReduceOp::Sum>},
    {"prod", kTM, "input, dim=?, keepdim=False, *, dtype=?", reduce<ReduceOp::Prod>},
    {"mean", kTM, "input, dim=?, keepdim=False, *, dtype=?", mean},
    {"amax", kTM, "input, dim=?, keepdim=False", reduce<ReduceOp::Max>},
    {"amin", kTM, "input, dim=?, keepdim=False", reduce<ReduceOp::Min>},
    {"any", kTM, "input, dim=?, keepdim=False", reduce<ReduceOp::Any>},
    {"all", kTM, "input, dim=?, keepdim=False", reduce<ReduceOp::All>},
    {"var", kTM, "input, dim=?, keepdim=False, unbiased=True, *, correction=?", var},
    {"std", kTM, "input, dim=?, keepdim=False, unbiased=True, *, correction=?", stddev},
    {"norm", kTM, "input, p=?, dim=?, keepdim=False", norm, "p is 2"},
    {"softmax", kTMF, "input, dim, dtype=?", softmax_row},
    {"log_softmax", kTMF, "input, dim, dtype=?", log_softmax_row},
    {"logsumexp", kTM, "input, dim, keepdim=False", logsumexp_row},
    {"cumsum", kTM, "input, dim", cumsum},
    {"argsort", kTM, "input, dim=-1, descending=False, stable=False", argsort,
     "stable always; kernels: to be turned into ranks"},
    {"argmax", kTM, "input, dim=?, keepdim=False", arg_extremum_row<false>, "the first of equals"},
    {"argmin", kTM, "input, dim=?, keepdim=False", arg_extremum_row<true>, "the first of equals"},
    {"count_nonzero", kTM, "input, dim=?", count_nonzero},
    {"normalize", kFunctional, "input, p=2.0, dim=1, eps=1e-12", normalize, "p is 2"},
    {"rms_norm", kTorch | kFunctional, "input, normalized_shape, weight=?, eps=?", rms_norm},
    {"layer_norm", kTorch | kFunctional, "input, normalized_shape, weight=?, bias=?, eps=1e-5", layer_norm},
};

} // namespace

TensorRef arg_extremum(Domain& d, const TensorRef& t, int dim, bool keepdim, bool least) {
    // bool and narrow integers have no negative of each value
    const TensorRef x = is_float(t->dtype) || t->dtype == DType::I64 ? t : d.cast(t, DType::I64);
    return d.argmax(least ? d.apply(Op::Neg, {x}) : x, dim, keepdim);
}

TensorRef softmax(Domain& d, const TensorRef& x, int dim, bool logarithm) {
    if (d.rank(x) == 0) return d.reshape(softmax(d, unsqueeze(d, x, 0), 0, logarithm), {});
    if (has_no_elements(d, x)) return x;
    const TensorRef m = d.reduce(ReduceOp::Max, x, {dim}, true);
    const TensorRef shifted = d.apply(Op::Sub, {x, m});
    const TensorRef e = d.apply(Op::Exp, {shifted});
    const TensorRef l = d.reduce(ReduceOp::Sum, e, {dim}, true);
    if (logarithm) return d.apply(Op::Sub, {shifted, d.apply(Op::Log, {l})});
    return d.apply(Op::Div, {e, l});
}

// A row of -inf gives -inf, an empty one too, as torch.logsumexp does.
TensorRef logsumexp(Domain& d, const TensorRef& x, const std::vector<int>& dims, bool keepdim) {
    const double inf = std::numeric_limits<double>::infinity();
    if (has_no_elements(d, x)) return d.apply(Op::Log, {d.reduce(ReduceOp::Sum, d.apply(Op::Exp, {x}), dims, keepdim)});
    const TensorRef m = d.reduce(ReduceOp::Max, x, dims, true);
    const TensorRef infinite = d.apply(Op::Eq, {d.apply(Op::Abs, {m}), d.wrap(Value(inf))});
    const TensorRef safe = d.apply(Op::Where, {infinite, d.cast(d.wrap(Value(0)), x->dtype), m});
    const TensorRef l = d.reduce(ReduceOp::Sum, d.apply(Op::Exp, {d.apply(Op::Sub, {x, safe})}), dims, keepdim);
    TensorRef shift = safe;
    if (!keepdim) {
        Values sizes;
        const Values all = d.shape(safe);
        for (std::size_t k = 0; k < all.size(); ++k)
            if (std::find(dims.begin(), dims.end(), static_cast<int>(k)) == dims.end()) sizes.push_back(all[k]);
        shift = d.reshape(safe, sizes);
    }
    return d.apply(Op::Add, {shift, d.apply(Op::Log, {l})});
}

std::span<const Routine> rows_reduce() {
    return rows;
}

} // namespace cubridge::ir::spec
