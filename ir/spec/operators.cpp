// Python's operators on numbers, tensors and sequences. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/interpreter.h"
#include "ir/spec/library.h"
#include <algorithm>
#include <cmath>
#include <cstring>

namespace cubridge::ir::spec {

namespace {

std::optional<Op> binary_op(const std::string& sign) {
    static constexpr std::pair<const char*, Op> table[] = {
        {"+", Op::Add},  {"-", Op::Sub}, {"*", Op::Mul}, {"/", Op::Div}, {"//", Op::FloorDiv}, {"%", Op::Mod},
        {"**", Op::Pow}, {"&", Op::And}, {"|", Op::Or},  {"^", Op::Xor}, {"<", Op::Lt},        {"<=", Op::Le},
        {">", Op::Gt},   {">=", Op::Ge}, {"==", Op::Eq}, {"!=", Op::Ne}};
    for (const auto& [text, op] : table)
        if (sign == text) return op;
    return std::nullopt;
}

double as_double(const Value& v) {
    if (v.is<bool>()) return v.as<bool>() ? 1 : 0;
    if (v.is<std::int64_t>()) return static_cast<double>(v.as<std::int64_t>());
    return v.as<double>();
}

std::int64_t as_int(const Value& v) {
    return v.is<bool>() ? (v.as<bool>() ? 1 : 0) : v.as<std::int64_t>();
}

// Known Python numbers.
Value arithmetic(Op op, const Value& a, const Value& b, Span span) {
    if (op >= Op::Lt && op <= Op::Ne) {
        if (a.is<double>() || b.is<double>()) {
            const double x[] = {as_double(a), as_double(b)};
            return info(op).real(x) != 0;
        }
        const std::int64_t x = as_int(a), y = as_int(b);
        switch (op) {
        case Op::Lt: return x < y;
        case Op::Le: return x <= y;
        case Op::Gt: return x > y;
        case Op::Ge: return x >= y;
        case Op::Eq: return x == y;
        default: return x != y;
        }
    }
    const bool logic = op == Op::And || op == Op::Or || op == Op::Xor;
    if (logic && a.is<bool>() && b.is<bool>()) {
        const bool x = a.as<bool>(), y = b.as<bool>();
        return op == Op::And ? (x && y) : op == Op::Or ? (x || y) : x != y;
    }
    const bool floats = a.is<double>() || b.is<double>();
    if (logic && floats) fail("type", "bitwise operators take no floats", span);
    const bool zero = (op == Op::Div || op == Op::FloorDiv || op == Op::Mod) && as_double(b) == 0;
    if (zero) fail("domain", "division by zero", span);
    if (op == Op::Pow && as_double(a) == 0 && as_double(b) < 0) fail("domain", "zero to a negative power", span);
    if (floats || op == Op::Div || (op == Op::Pow && as_double(b) < 0)) {
        const double x[] = {as_double(a), as_double(b)};
        const double r = info(op).real(x);
        if (op == Op::Pow && r != r && x[0] < 0) fail("domain", "a negative number to a fractional power", span);
        if (op == Op::Pow && std::isinf(r) && std::isfinite(x[0]) && std::isfinite(x[1]))
            fail("domain", "a power is too large for a float", span);
        return r;
    }
    std::int64_t x = as_int(a), y = as_int(b), r = 0;
    bool overflow = false;
    switch (op) {
    case Op::Add: overflow = __builtin_add_overflow(x, y, &r); break;
    case Op::Sub: overflow = __builtin_sub_overflow(x, y, &r); break;
    case Op::Mul: overflow = __builtin_mul_overflow(x, y, &r); break;
    case Op::FloorDiv:
        overflow = x == INT64_MIN && y == -1;
        r = floor_div(x, y);
        break;
    case Op::Mod: r = floor_mod(x, y); break;
    case Op::Min: r = std::min(x, y); break;
    case Op::Max: r = std::max(x, y); break;
    case Op::And: r = x & y; break;
    case Op::Or: r = x | y; break;
    case Op::Xor: r = x ^ y; break;
    case Op::Pow: {
        r = 1;
        if (y > 64 && x != 0 && x != 1 && x != -1) overflow = true;
        for (std::int64_t k = 0; k < (overflow ? 0 : y % 128) && !overflow; ++k)
            overflow = __builtin_mul_overflow(r, x, &r);
        break;
    }
    default: fail("type", "this operator does not take two numbers", span);
    }
    if (overflow) fail("limit", "an integer does not fit 64 bits", span, "use smaller numbers, or a float");
    return r;
}

bool equal_values(const Value& a, const Value& b) {
    if (a.number() && b.number() && !a.is<Expr>() && !b.is<Expr>())
        return a.is<double>() || b.is<double>() ? as_double(a) == as_double(b) : as_int(a) == as_int(b);
    if (a.is<std::string>() && b.is<std::string>()) return a.as<std::string>() == b.as<std::string>();
    if (a.is<DType>() && b.is<DType>()) return a.as<DType>() == b.as<DType>();
    if (a.none() || b.none()) return a.none() && b.none();
    return false;
}

} // namespace

Value Interpreter::elementwise(Op op, Values x) {
    if (std::any_of(x.begin(), x.end(), [](const Value& v) { return v.is<TensorRef>(); })) {
        std::vector<TensorRef> t;
        for (const Value& v : x) t.push_back(tensor(v));
        return domain_.apply(op, t);
    }
    for (const Value& v : x)
        if (!v.number()) fail("type", std::string("`") + info(op).name + "` does not take " + kind_of(v), span_);
    if (std::any_of(x.begin(), x.end(), [](const Value& v) { return v.is<Expr>(); })) return domain_.number(op, x);
    if (op == Op::Where) return x[as_double(x[0]) != 0 ? 1 : 2];
    if (x.size() == 2) {
        if ((op == Op::Min || op == Op::Max) &&
            (x[0].is<double>() || x[1].is<double>())) { // Python keeps the chosen operand
            const bool second = op == Op::Min ? as_double(x[1]) < as_double(x[0]) : as_double(x[1]) > as_double(x[0]);
            return x[second ? 1 : 0];
        }
        return arithmetic(op, x[0], x[1], span_);
    }
    if (op == Op::Neg && !x[0].is<double>()) return arithmetic(Op::Sub, Value(0), x[0], span_);
    if (op == Op::Abs && !x[0].is<double>()) {
        return as_int(x[0]) < 0 ? arithmetic(Op::Sub, Value(0), x[0], span_) : Value(as_int(x[0]));
    }
    if (op == Op::Not) return as_double(x[0]) == 0;
    const double v = as_double(x[0]), r = info(op).real(&v);
    if (r != r && v == v) fail("domain", std::string("math domain error in ") + info(op).name, span_);
    return r;
}

Value Interpreter::binary(const std::string& sign, const Value& a, const Value& b) {
    if (sign == "@") return matmul(domain_, tensor(a), tensor(b));
    if (a.is<Sequence>() || b.is<Sequence>()) {
        if (sign == "+" && a.is<Sequence>() && b.is<Sequence>() && a.as<Sequence>().tuple == b.as<Sequence>().tuple) {
            list_size(a.as<Sequence>().items->size() + b.as<Sequence>().items->size());
            Values items = *a.as<Sequence>().items;
            items.insert(items.end(), b.as<Sequence>().items->begin(), b.as<Sequence>().items->end());
            return Sequence{make_items(std::move(items)), a.as<Sequence>().tuple};
        }
        const Value &s = a.is<Sequence>() ? a : b, &n = a.is<Sequence>() ? b : a;
        if (sign == "*" && n.number() && !n.is<double>()) {
            const std::int64_t times = n.is<Expr>() ? domain_.require_int(n, "repeating a list") : as_int(n);
            const auto& items = *s.as<Sequence>().items;
            const std::uint64_t many = static_cast<std::uint64_t>(std::clamp<std::int64_t>(times, 0, 1 << 20));
            list_size(many * items.size());
            Values out;
            for (std::uint64_t k = 0; k < many && !items.empty(); ++k)
                out.insert(out.end(), items.begin(), items.end());
            return Sequence{make_items(std::move(out)), s.as<Sequence>().tuple};
        }
        if (!a.is<TensorRef>() && !b.is<TensorRef>())
            fail("type", "`" + sign + "` does not take " + kind_of(a) + " and " + kind_of(b), span_);
    }
    const auto op = binary_op(sign);
    if (!op) fail("unsupported", "the operator `" + sign + "` is not part of a specification", span_);
    if (!a.is<TensorRef>() && !a.number())
        fail("type", "`" + sign + "` does not take " + kind_of(a) + " and " + kind_of(b), span_,
             a.none() ? "give the parameter a value, or test it with `is None`" : "");
    if (!b.is<TensorRef>() && !b.number())
        fail("type", "`" + sign + "` does not take " + kind_of(a) + " and " + kind_of(b), span_,
             b.none() ? "give the parameter a value, or test it with `is None`" : "");
    return elementwise(*op, {a, b});
}

Value Interpreter::unary(const std::string& sign, const Value& a) {
    if (sign == "not") return !truth(a);
    if (sign == "+") return a;
    if (sign == "-") return elementwise(Op::Neg, {a});
    if (a.is<TensorRef>()) {
        if (is_float(a.as<TensorRef>()->dtype))
            fail("type", "`~` takes a boolean tensor, this is " + kind_of(a), span_,
                 "compare first, or use torch.logical_not");
        return elementwise(Op::Not, {a});
    }
    if (a.is<std::int64_t>()) return ~a.as<std::int64_t>();
    fail("unsupported", "`~` of " + kind_of(a), span_, "use `not`");
}

Value Interpreter::compare(const std::string& sign, const Value& a, const Value& b) {
    if (sign == "is" || sign == "is not") {
        const bool same = a.none() || b.none() ? a.none() && b.none() : equal_values(a, b);
        return same == (sign == "is");
    }
    if (sign == "in" || sign == "not in") {
        bool found = false;
        for (const Value& v : iterate(b)) found = found || equal_values(a, v);
        return found == (sign == "in");
    }
    const bool plain = (a.number() || a.is<TensorRef>()) && (b.number() || b.is<TensorRef>());
    if (plain) return elementwise(*binary_op(sign), {a, b});
    if (a.is<Sequence>() && b.is<Sequence>() && (sign == "==" || sign == "!=")) { // shapes
        const auto &x = *a.as<Sequence>().items, &y = *b.as<Sequence>().items;
        bool same = x.size() == y.size();
        step(1 + x.size());
        for (std::size_t k = 0; same && k < x.size(); ++k)
            same = nested([&] { return truth(compare("==", x[k], y[k])); });
        return same == (sign == "==");
    }
    if (sign == "==" || sign == "!=") return equal_values(a, b) == (sign == "==");
    fail("type", "`" + sign + "` does not take " + kind_of(a) + " and " + kind_of(b), span_);
}

} // namespace cubridge::ir::spec
