// Rows of Python itself and of math. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/library.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir::spec {

namespace {

template <Op op> Value math(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    Value v = a[0];
    if (v.is<TensorRef>()) v = d.item(v.as<TensorRef>(), a.routine().name);
    if (!v.number()) a.wrong(0, "a number");
    v = v.is<Expr>()     ? d.to_float(v)
        : v.is<double>() ? v
                         : Value(static_cast<double>(v.is<bool>() ? v.as<bool>() : v.as<std::int64_t>()));
    if constexpr (op == Op::Log || op == Op::Log2 || op == Op::Log10)
        if (v.is<double>() && v.as<double>() <= 0)
            fail("domain", std::string("math.") + a.routine().name + " of a number that is not positive", in.span());
    const Value r = in.elementwise(op, {v});
    if (v.is<double>() && r.is<double>() && std::isinf(r.as<double>()) &&
        std::isfinite(v.as<double>())) // Python raises
        fail("domain",
             std::string("math.") + a.routine().name + " of " + std::to_string(v.as<double>()) + " is not finite",
             in.span());
    return r;
}

// math.log(x, base).
Value math_log(Interpreter& in, Args& a) {
    const Value x = math<Op::Log>(in, a);
    if (!a.given(1)) return x;
    const Value& b = a[1];
    if (!b.number()) a.wrong(1, "a number");
    const Value base = b.is<Expr>() ? in.domain().to_float(b) : b;
    return in.binary("/", x, in.elementwise(Op::Log, {base}));
}

template <Op op> Value math_to_int(Interpreter& in, Args& a) {
    if (a[0].is<std::int64_t>()) return a[0];
    if (a[0].is<Expr>() && a[0].as<Expr>()->type == Type::Int) return a[0];
    const Value v = math<op>(in, a);
    if (v.is<double>()) {
        if (!(std::fabs(v.as<double>()) < 9e15)) fail("domain", "a number that is no integer", in.span());
        return static_cast<std::int64_t>(v.as<double>());
    }
    return in.domain().to_int(v);
}

Value math_pow(Interpreter& in, Args& a) {
    Domain& d = in.domain();
    const auto real = [&](const Value& v) -> Value {
        if (v.is<Expr>()) return d.to_float(v);
        if (v.is<std::int64_t>()) return static_cast<double>(v.as<std::int64_t>());
        return v;
    };
    return in.elementwise(Op::Pow, {real(a[0]), real(a[1])});
}

Value to_int(Interpreter& in, Args& a) {
    Value v = a[0];
    if (v.is<TensorRef>()) v = in.domain().item(v.as<TensorRef>(), "int()");
    if (v.is<Expr>()) return in.domain().to_int(v);
    if (v.is<bool>()) return std::int64_t{v.as<bool>()};
    if (v.is<std::int64_t>()) return v;
    if (v.is<double>()) {
        if (!(std::fabs(v.as<double>()) < 9e15)) fail("domain", "int() of a number that is no integer", in.span());
        return static_cast<std::int64_t>(v.as<double>());
    }
    a.wrong(0, "a number");
}

Value to_float(Interpreter& in, Args& a) {
    Value v = a[0];
    if (v.is<TensorRef>()) v = in.domain().item(v.as<TensorRef>(), "float()");
    if (v.is<Expr>()) return in.domain().to_float(v);
    if (v.is<double>()) return v;
    if (v.is<bool>()) return v.as<bool>() ? 1.0 : 0.0;
    if (v.is<std::int64_t>()) return static_cast<double>(v.as<std::int64_t>());
    if (v.is<std::string>()) {
        std::string s;
        for (const char c : v.as<std::string>()) s += static_cast<char>(c >= 'A' && c <= 'Z' ? c + 32 : c);
        if (s == "inf" || s == "+inf" || s == "infinity") return HUGE_VAL;
        if (s == "-inf" || s == "-infinity") return -HUGE_VAL;
        if (s == "nan") return std::nan("");
        fail("type", "float(\"" + v.as<std::string>().substr(0, 40) + "\"): \"inf\", \"-inf\" and \"nan\" are known",
             in.span());
    }
    a.wrong(0, "a number");
}

Value to_bool(Interpreter& in, Args& a) {
    return in.truth(a[0]);
}

Value len(Interpreter& in, Args& a) {
    if (a[0].is<Sequence>()) return static_cast<std::int64_t>(a[0].as<Sequence>().items->size());
    if (a[0].is<TensorRef>()) {
        const Values s = in.domain().shape(a.tensor(0));
        if (!s.empty()) return s[0];
    }
    a.wrong(0, "a list, a tuple or a tensor");
}

Value range(Interpreter& in, Args& a) {
    const std::int64_t start = a.given(1) ? a.integer(0) : 0, stop = a.given(1) ? a.integer(1) : a.integer(0);
    const std::int64_t step = a.given(2) ? a.integer(2) : 1;
    if (step == 0) fail("domain", "range() with step 0", in.span());
    if (step > 0 ? start >= stop : start <= stop) return make_list({});
    const auto distance = step > 0 ? static_cast<std::uint64_t>(stop) - static_cast<std::uint64_t>(start)
                                   : static_cast<std::uint64_t>(start) - static_cast<std::uint64_t>(stop);
    const auto by = step > 0 ? static_cast<std::uint64_t>(step) : std::uint64_t{0} - static_cast<std::uint64_t>(step);
    const std::uint64_t n = (distance - 1) / by + 1;
    if (n > 100000)
        fail("limit", "a range of more than 100000 numbers", in.span(), "use torch.arange and whole-tensor operations");
    in.list_size(n);
    Values out;
    for (std::uint64_t k = 0; k < n; ++k) out.push_back(start + static_cast<std::int64_t>(k) * step);
    return make_list(std::move(out));
}

Value enumerate(Interpreter& in, Args& a) {
    Values out;
    std::int64_t k = a.given(1) ? a.integer(1) : 0;
    for (const Value& v : in.iterate(a[0])) {
        out.push_back(make_tuple({Value(k), v}));
        if (__builtin_add_overflow(k, 1, &k)) fail("limit", "an integer does not fit 64 bits", in.span());
    }
    return make_list(std::move(out));
}

Value zip(Interpreter& in, Args& a) {
    std::vector<Values> lists;
    for (const Value& v : *a[0].as<Sequence>().items) lists.push_back(in.iterate(v));
    Values out;
    for (std::size_t k = 0; !lists.empty(); ++k) {
        Values row;
        for (const Values& l : lists) {
            if (k >= l.size()) return make_list(std::move(out));
            row.push_back(l[k]);
        }
        out.push_back(make_tuple(std::move(row)));
    }
    return make_list(std::move(out));
}

template <Op op> Value extremum(Interpreter& in, Args& a) { // of its arguments, or of one list
    const Values items = *a[0].as<Sequence>().items;
    if (items.empty()) fail("type", std::string(a.routine().name) + "() of nothing", in.span());
    Value v = items[0];
    for (std::size_t k = 1; k < items.size(); ++k) {
        if (v.is<TensorRef>() || items[k].is<TensorRef>())
            fail("unsupported", std::string("Python's ") + a.routine().name + "() of tensors decides on data",
                 in.span(), std::string("use torch.") + (op == Op::Max ? "maximum" : "minimum"));
        v = in.elementwise(op, {v, items[k]});
    }
    return v;
}

Value sum(Interpreter& in, Args& a) {
    Value v = a.given(1) ? a[1] : Value(0);
    for (const Value& i : in.iterate(a[0])) v = in.binary("+", v, i);
    return v;
}

template <bool any> Value quantifier(Interpreter& in, Args& a) {
    for (const Value& v : in.iterate(a[0]))
        if (in.truth(v) == any) return any;
    return !any;
}

Value list(Interpreter& in, Args& a) {
    return a.given(0) ? make_list(in.iterate(a[0])) : make_list({});
}
Value tuple(Interpreter& in, Args& a) {
    return a.given(0) ? make_tuple(in.iterate(a[0])) : make_tuple({});
}
Value reversed(Interpreter& in, Args& a) {
    Values v = in.iterate(a[0]);
    return make_list(Values(v.rbegin(), v.rend()));
}
Value absolute(Interpreter& in, Args& a) {
    return in.elementwise(Op::Abs, {a[0]});
}
Value round_number(Interpreter& in, Args& a) {
    return math_to_int<Op::Round>(in, a);
}
Value slice(Interpreter& in, Args& a) {
    const Values x = *a[0].as<Sequence>().items;
    if (x.empty() || x.size() > 3) fail("type", "slice() takes one to three arguments", in.span());
    for (const Value& v : x)
        if (!v.none() && !v.number()) a.wrong(0, "integers");
    auto p = std::make_shared<std::array<Value, 3>>();
    if (x.size() == 1)
        (*p)[1] = x[0];
    else
        std::copy(x.begin(), x.end(), p->begin());
    return SliceValue{std::move(p)};
}

Value isinstance(Interpreter& in, Args& a) {
    const Values kinds = a[1].is<Sequence>() ? *a[1].as<Sequence>().items : Values{a[1]};
    for (const Value& k : kinds) {
        if (k.is<RoutineValue>()) {
            const std::string_view n = k.as<RoutineValue>().routine->name;
            const bool symbol_int = a[0].is<Expr>() && a[0].as<Expr>()->type == Type::Int;
            if (n == "int" && (a[0].is<std::int64_t>() || a[0].is<bool>() || symbol_int)) return true;
            if (n == "float" && (a[0].is<double>() || (a[0].is<Expr>() && !symbol_int))) return true;
            if (n == "bool" && a[0].is<bool>()) return true;
            if ((n == "list" || n == "tuple") && a[0].is<Sequence>() && a[0].as<Sequence>().tuple == (n == "tuple"))
                return true;
        } else if (k.is<Opaque>()) {
            if (a[0].is<TensorRef>()) return true; // torch.Tensor
        } else {
            fail("type", "isinstance() of " + kind_of(k), in.span());
        }
    }
    return false;
}

Value finfo(Interpreter&, Args& a) {
    return LimitsValue{a.dtype(0, DType::F32)};
}
Value append(Interpreter& in, Args& a) {
    Values& items = *a[0].as<Sequence>().items;
    in.put_in(items, a[1]);
    items.push_back(a[1]);
    return Value();
}
Value is_inf_number(Interpreter& in, Args& a) {
    return in.elementwise(Op::Eq, {in.elementwise(Op::Abs, {a[0]}), Value(HUGE_VAL)});
}

constexpr Routine rows[] = {
    {"sqrt", kMath, "x", math<Op::Sqrt>},
    {"exp", kMath, "x", math<Op::Exp>},
    {"log", kMath, "x, base=?", math_log},
    {"log2", kMath, "x", math<Op::Log2>},
    {"log10", kMath, "x", math<Op::Log10>},
    {"log1p", kMath, "x", math<Op::Log1p>},
    {"sin", kMath, "x", math<Op::Sin>},
    {"cos", kMath, "x", math<Op::Cos>},
    {"tan", kMath, "x", math<Op::Tan>},
    {"tanh", kMath, "x", math<Op::Tanh>},
    {"fabs", kMath, "x", math<Op::Abs>},
    {"erf", kMath, "x", math<Op::Erf>},
    {"floor", kMath, "x", math_to_int<Op::Floor>},
    {"ceil", kMath, "x", math_to_int<Op::Ceil>},
    {"trunc", kMath, "x", math_to_int<Op::Trunc>},
    {"pow", kMath, "x, y", math_pow},
    {"isinf", kMath, "x", is_inf_number},
    {"sym_sqrt", kTorch, "x", math<Op::Sqrt>},
    {"int", kBuiltin, "x=0", to_int},
    {"float", kBuiltin, "x=0", to_float},
    {"bool", kBuiltin, "x=False", to_bool},
    {"abs", kBuiltin, "x", absolute},
    {"round", kBuiltin, "x", round_number, "to an int"},
    {"min", kBuiltin, "*x", extremum<Op::Min>},
    {"max", kBuiltin, "*x", extremum<Op::Max>},
    {"sum", kBuiltin, "x, start=?", sum},
    {"any", kBuiltin, "x", quantifier<true>},
    {"all", kBuiltin, "x", quantifier<false>},
    {"len", kBuiltin, "x", len},
    {"range", kBuiltin, "start, stop=?, step=?", range},
    {"enumerate", kBuiltin, "x, start=?", enumerate},
    {"zip", kBuiltin, "*x", zip},
    {"list", kBuiltin, "x=?", list},
    {"tuple", kBuiltin, "x=?", tuple},
    {"reversed", kBuiltin, "x", reversed},
    {"slice", kBuiltin, "*bounds", slice},
    {"isinstance", kBuiltin, "x, kinds", isinstance},
    {"finfo", kTorch, "dtype=?", finfo, "min, max, eps, tiny"},
    {"iinfo", kTorch, "dtype=?", finfo, "min, max"},
    {"append", kListMethod, "list, x", append},
};

} // namespace

std::span<const Routine> rows_python() {
    return rows;
}

} // namespace cubridge::ir::spec
