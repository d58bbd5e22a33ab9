// Making and computing: expressions of elements. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/symbolic.h"
#include "ir/tensor/promotion.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::spec {

namespace {

Type type_of(DType t) {
    return t == DType::Bool ? Type::Bool : is_float(t) ? Type::Real : Type::Int;
}
// Integers here are unbounded; those that wrap around early are no numbers to compute with.
void refuse_narrow(DType t) {
    if (is_integer(t) && size_in_bytes(t) < 4)
        fail("unsupported", std::string("arithmetic in ") + torch_name(t) + " wraps around", {},
             "use torch.int32 or torch.int64");
}
DType result_type(const std::vector<const SymbolicTensor*>& x) {
    tensor::Promotion p;
    for (const auto* t : x) p.add(t->dtype, t->shape.size(), t->scalar);
    return p.result();
}

} // namespace

TensorRef SymbolicDomain::input(int number, DType dtype, const std::vector<int>& sizes, bool from_qkv, bool raw) {
    std::vector<Expr> shape, at;
    for (std::size_t k = 0; k < sizes.size(); ++k) {
        shape.push_back(resolve(pool_.dim(sizes[k])));
        at.push_back(pool_.index(static_cast<int>(k)));
    }
    const Expr body = pool_.load(number, type_of(dtype), at);
    auto r = fresh(dtype, std::move(shape), body, from_qkv ? 0 : std::uint64_t{1} << (number & 63));
    if (!from_qkv && is_float(dtype)) r->pin = pool_.cast(Type::F32, body);
    r->raw = raw ? number : -1;
    r->guessed = raw;
    return r;
}

Value SymbolicDomain::scalar(int number, Type type) {
    return pool_.arg(number, type);
}

Expr SymbolicDomain::convert(Expr body, DType from, DType to) {
    const Type a = type_of(from), b = type_of(to);
    return a == b ? body : pool_.cast(b, body);
}

TensorRef SymbolicDomain::cast(const TensorRef& t, DType dtype) {
    const auto& x = at(t);
    if (x.dtype == dtype && !x.scalar && x.raw < 0) return t;
    if (x.raw >= 0 && is_integer(dtype)) uses_[x.raw] |= kUsedAsInt;
    if (x.dtype != DType::Bool) refuse_narrow(dtype);
    auto r = std::make_shared<SymbolicTensor>(x);
    r->dtype = dtype;
    r->scalar = false;
    r->raw = -1;
    if (!is_integer(dtype) && x.sorted)
        fail("unsupported", "computing with an argsort", {},
             "turn the order into ranks (argsort of argsort, or scatter) and compare");
    const bool narrowing = is_float(x.dtype) && !is_float(dtype);
    r->body = narrowing && x.pin ? pool_.cast(type_of(dtype), x.pin) : convert(x.body, x.dtype, dtype);
    if (dtype == DType::F32)
        r->pin = is_float(x.dtype) ? x.pin : pool_.cast(Type::F32, x.body);
    else
        r->pin = nullptr;
    return r;
}

std::vector<Expr> SymbolicDomain::broadcast(const std::vector<const SymbolicTensor*>& x) {
    std::size_t rank = 0;
    for (const auto* t : x) rank = std::max(rank, t->shape.size());
    std::vector<Expr> shape(rank, pool_.integer(1));
    for (const auto* t : x)
        for (std::size_t k = 0; k < t->shape.size(); ++k) {
            Expr& s = shape[rank - t->shape.size() + k];
            if (is_int(t->shape[k], 1)) continue;
            if (is_int(s, 1))
                s = t->shape[k];
            else
                unify(s, t->shape[k], "broadcasting");
        }
    return shape;
}

Expr SymbolicDomain::aligned(const SymbolicTensor& t, Expr body, const std::vector<Expr>& shape) {
    std::vector<Expr> map;
    for (std::size_t k = 0; k < t.shape.size(); ++k) {
        const std::size_t axis = shape.size() - t.shape.size() + k;
        map.push_back(is_int(t.shape[k], 1) && !is_int(shape[axis], 1) ? pool_.integer(0)
                                                                       : pool_.index(static_cast<int>(axis)));
    }
    return pool_.substitute(body, map);
}

// How captured tensors of unknown type are used (variant.md: int if it indexes, or is compared or added only to ints,
// positions or itself).
void SymbolicDomain::note_uses(Op op, const std::vector<TensorRef>& x) {
    const bool compares = op >= Op::Lt && op <= Op::Ne,
               adds = op == Op::Add || op == Op::Sub || op == Op::Min || op == Op::Max;
    for (std::size_t k = 0; k < x.size(); ++k) {
        const auto& t = at(x[k]);
        if (t.raw < 0) continue;
        unsigned& use = uses_[t.raw];
        if (op == Op::And || op == Op::Or || op == Op::Not || op == Op::Xor || (op == Op::Where && k == 0)) {
            use |= kUsedAsBool;
        } else if ((compares || adds) && x.size() == 2) {
            const auto& o = at(x[1 - k]);
            const bool whole = o.raw >= 0 ? compares || o.raw == t.raw : !is_float(o.dtype);
            use |= whole ? kUsedAsInt : kUsedAsFloat;
        } else if (op != Op::Where) {
            use |= kUsedAsFloat;
        }
    }
}

TensorRef SymbolicDomain::apply(Op op, const std::vector<TensorRef>& operands) {
    begin();
    std::vector<const SymbolicTensor*> x;
    std::uint64_t inputs = 0;
    for (const auto& t : operands) {
        if (at(t).sorted)
            fail("unsupported", "computing with an argsort", {},
                 "turn the order into ranks (argsort of argsort, or scatter) and compare");
        x.push_back(&at(t));
        touch(*x.back());
        inputs |= x.back()->inputs;
    }
    note_uses(op, operands);
    const bool logic = op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Not;
    const bool where = op == Op::Where, compares = op >= Op::Lt && op <= Op::Ne;
    std::vector<const SymbolicTensor*> typed = x;
    if (where) {
        if (x[0]->dtype != DType::Bool) fail("type", "torch.where() takes a boolean condition");
        typed.erase(typed.begin());
    }
    DType type = result_type(typed);
    if (logic && type != DType::Bool)
        fail(is_float(type) ? "type" : "unsupported",
             is_float(type) ? "`&`, `|`, `^` and `~` take booleans, not floats"
                            : "bitwise operators take booleans here, not integers",
             {}, "compare first: (a > 0) & (b > 0)");
    if (type == DType::Bool && (op == Op::Sub || op == Op::Neg))
        fail("type", "subtracting booleans", {}, "use torch.logical_xor, or convert with .int()");
    refuse_narrow(type);
    if ((op == Op::Div || info(op).real_in) && !is_float(type)) type = DType::F32;
    if (op == Op::Pow && !is_float(type)) {
        const Expr e = x[1]->body;
        if (!is_const(e) || e->integer < 0 || e->integer > 16)
            fail("unsupported", "an integer tensor to a power that is no constant from 0 to 16", {},
                 "convert with .float()");
        if (type == DType::Bool) type = DType::I64;
    }
    const std::vector<Expr> shape = broadcast(x);
    std::vector<Expr> args;
    bool pinned = type == DType::F32 || (compares && is_float(type));
    for (const auto* t : typed) pinned = pinned && (t->pin || !is_float(t->dtype) || (t->scalar && t->body->free == 0));
    // a Python number that hangs on no data is known in float32 as well
    const auto pin_of = [&](const SymbolicTensor& t) {
        return aligned(t, t.pin ? t.pin : pool_.cast(Type::F32, t.body), shape);
    };
    const bool any_pin =
        std::any_of(typed.begin(), typed.end(), [](const auto* t) { return t->pin || !is_float(t->dtype); });
    pinned = pinned && any_pin;
    const bool rounds = op == Op::FloorDiv || (op >= Op::Floor && op <= Op::Round);
    std::vector<Expr> pins;
    for (const auto* t : x) {
        const bool condition = where && t == x[0] && args.empty();
        args.push_back(condition ? aligned(*t, t->body, shape) : convert(aligned(*t, t->body, shape), t->dtype, type));
        if (pinned) pins.push_back(condition ? args.back() : pin_of(*t));
    }
    Expr pin = pinned && is_float(type) ? pool_.apply(op, pins) : nullptr;
    Expr body = nullptr;
    if (compares && pin)
        body = pin, pin = nullptr;
    else
        body = pin && rounds ? pool_.cast(Type::Real, pin) : compute(op, args);
    const DType result = info(op).bool_out || compares || logic ? DType::Bool : type;
    if (body->type != type_of(result)) body = pool_.cast(type_of(result), body);
    auto r = fresh(result, shape, body, inputs);
    r->pin = result == DType::F32 ? pin : nullptr;
    r->scalar = std::all_of(x.begin(), x.end(), [](const auto* t) { return t->scalar; });
    return r;
}

TensorRef SymbolicDomain::full(const Values& sizes, const Value& value, DType dtype) {
    begin();
    std::vector<Expr> shape;
    for (const Value& v : sizes) {
        shape.push_back(size_of(v));
        if (is_const(shape.back()) && shape.back()->integer < 0) fail("shape", "a tensor with a negative size");
        if (is_const(shape.back()) && shape.back()->integer > (std::int64_t{1} << 40))
            fail("limit", "a tensor with a size of " + std::to_string(shape.back()->integer));
    }
    const Expr v = resolve(to_expr(value));
    refuse_narrow(dtype);
    auto r = fresh(dtype, std::move(shape), pool_.cast(type_of(dtype), v), 0);
    if (dtype == DType::F32) r->pin = pool_.cast(Type::F32, v);
    return r;
}

TensorRef SymbolicDomain::wrap(const Value& number) {
    const Expr e = resolve(to_expr(number));
    auto r = fresh(e->type == Type::Bool ? DType::Bool : e->type == Type::Int ? DType::I64 : DType::F32, {}, e, 0);
    if (e->type == Type::Real) r->pin = pool_.cast(Type::F32, e);
    r->scalar = true;
    return r;
}

TensorRef SymbolicDomain::arange(const Value& start, const Value& stop, const Value& step, DType dtype) {
    begin();
    const Expr a = resolve(to_expr(start)), b = resolve(to_expr(stop)), s = resolve(to_expr(step));
    refuse_narrow(dtype);
    if (a->type == Type::Real || b->type == Type::Real || s->type == Type::Real) {
        if (!is_const(a) || !is_const(b) || !is_const(s))
            fail("unsupported", "arange() over floats that are known at launch only", {}, "use integers and convert");
        const auto v = [](Expr e) { return e->type == Type::Real ? e->real : static_cast<double>(e->integer); };
        if (v(s) == 0) fail("domain", "arange() with step 0");
        const double n = std::ceil((v(b) - v(a)) / v(s));
        if (!(n < 1e6)) fail("limit", "arange() of more than a million floats");
        const Expr i = pool_.cast(Type::Real, pool_.index(0));
        const Expr body = pool_.rsum(v(a), {{v(s), i}});
        auto r = fresh(dtype, {pool_.integer(std::max<std::int64_t>(0, static_cast<std::int64_t>(n)))},
                       pool_.cast(type_of(dtype), body), 0);
        if (dtype == DType::F32) r->pin = pool_.cast(Type::F32, body);
        return r;
    }
    if (!is_const(s) || s->integer == 0)
        fail("unsupported", "arange() takes a constant step other than 0", {}, "multiply arange(n) by the step");
    const Expr from = size_of(to_value(a)), to = size_of(to_value(b));
    Expr count = pool_.sub(to, from);
    if (s->integer < 0) count = pool_.isum(0, {{-1, count}});
    if (s->integer == INT64_MIN) fail("limit", "an integer constant does not fit 64 bits", {}, "use smaller constants");
    const std::int64_t by = std::abs(s->integer);
    if (by > 1) count = pool_.apply(Op::FloorDiv, pool_.isum(by - 1, {{1, count}}), pool_.integer(by));
    if (is_const(count)) {
        if (count->integer < 0) fail("domain", "arange() of a negative count");
        if (count->integer > (std::int64_t{1} << 40))
            fail("limit", "arange() of " + std::to_string(count->integer) + " numbers");
    } else if (!nonnegative(count)) {
        require(Fact::Kind::AtLeast, count, pool_.integer(0));
    }
    const Expr steps[] = {s, pool_.index(0)}, terms[] = {compute(Op::Mul, steps), from};
    const Expr body = compute(Op::Add, terms);
    auto r = fresh(dtype, {count}, pool_.cast(type_of(dtype), body), 0);
    if (dtype == DType::F32) r->pin = pool_.cast(Type::F32, body);
    return r;
}

TensorRef SymbolicDomain::from_numbers(const std::vector<std::int64_t>& shape, const Values& numbers, DType dtype) {
    begin();
    std::vector<Expr> sizes, at;
    for (std::size_t k = 0; k < shape.size(); ++k) {
        sizes.push_back(pool_.integer(shape[k]));
        at.push_back(pool_.index(static_cast<int>(k)));
    }
    const Type type = type_of(dtype);
    refuse_narrow(dtype);
    ConstTable table{shape, {}, type};
    bool constant = true;
    std::vector<Expr> values;
    for (const Value& v : numbers) {
        if (!v.number()) fail("type", "a list of numbers is expected");
        values.push_back(pool_.cast(type, resolve(to_expr(v))));
        constant = constant && is_const(values.back());
        if (constant)
            table.values.push_back(type == Type::Real ? values.back()->real
                                                      : static_cast<double>(values.back()->integer));
    }
    Expr body = nullptr;
    if (constant && !values.empty()) {
        body = shape.empty() ? values[0] : pool_.table(pool_.add_table(std::move(table)), at);
    } else if (shape.size() <= 1 && values.size() <= 64 && !values.empty()) {
        body = values.back();
        for (std::size_t k = values.size() - 1; k-- > 0;)
            body = pool_.select(pool_.apply(Op::Le, pool_.index(0), pool_.integer(static_cast<std::int64_t>(k))),
                                values[k], body);
    } else if (values.empty()) {
        body = pool_.cast(type, pool_.integer(0));
    } else {
        fail("unsupported", "a table of numbers that are known at launch only", {}, "pass it as a captured tensor");
    }
    auto r = fresh(dtype, std::move(sizes), body, 0);
    if (dtype == DType::F32) r->pin = pool_.cast(Type::F32, body);
    return r;
}

Value SymbolicDomain::item(const TensorRef& t, const char* what_for) {
    begin();
    const auto& x = at(t);
    touch(x);
    const bool one = std::all_of(x.shape.begin(), x.shape.end(), [](Expr e) { return is_int(e, 1); });
    std::set<int> dims, args;
    bool loads = false;
    dims_of(x.body, dims, args, loads);
    if (!one || loads || x.body->free != 0)
        fail("unsupported", std::string(what_for) + " takes a number out of a tensor's data", {},
             "data stays on the GPU: write it with whole-tensor operations, or pass the number as a parameter");
    return to_value(x.body);
}

// A reduction along an axis that was joined by cat() splits at the seam; what only compares with the axis's end is
// decided.
Expr SymbolicDomain::reduce_axis(ReduceOp op, Expr body, int axis, Expr extent) {
    body = by_extent(body, axis, extent);
    const Expr i = pool_.index(axis);
    Expr seam = nullptr;
    std::set<Expr> seen;
    const auto find = [&](auto&& self, Expr e) -> void {
        if (seam || (e->free & index_bit(axis)) == 0 || !seen.insert(e).second) return;
        if (e->kind == Kind::Select && e->args[0]->kind == Kind::Cmp && e->args[0]->args.size() == 1 &&
            e->args[0]->op == Op::Le && e->args[0]->free == index_bit(axis)) {
            std::set<int> dims, args;
            bool loads = false;
            dims_of(e->args[0], dims, args, loads);
            const Expr rest =
                pool_.isum(0, {{1, e->args[0]->args[0]}, {-1, i}}); // i + rest <= 0: the first -rest + 1 ones
            if (args.empty() && !loads && (rest->free & index_bit(axis)) == 0) seam = pool_.isum(1, {{-1, rest}});
        }
        for (const Expr a : e->args) self(self, a);
    };
    find(find, body);
    const bool splits = seam &&
                        (op == ReduceOp::Sum || op == ReduceOp::Max || op == ReduceOp::Min || op == ReduceOp::Any ||
                         op == ReduceOp::All) &&
                        nonnegative(seam) && nonnegative(pool_.sub(extent, seam));
    if (!splits) return pool_.reduce(op, body, axis, extent);
    const Expr first = reduce_axis(op, body, axis, seam);
    std::vector<Expr> map(static_cast<std::size_t>(axis) + 1);
    map.back() = pool_.add(i, seam);
    const Expr second = reduce_axis(op, by_extent(pool_.substitute(body, map), axis, pool_.sub(extent, seam)), axis,
                                    pool_.sub(extent, seam));
    switch (op) {
    case ReduceOp::Sum: return pool_.add(first, second);
    case ReduceOp::Max: return pool_.apply(Op::Max, first, second);
    case ReduceOp::Min: return pool_.apply(Op::Min, first, second);
    case ReduceOp::Any: return pool_.logical_or(first, second);
    default: return pool_.logical_and(first, second);
    }
}

TensorRef SymbolicDomain::reduce(ReduceOp op, const TensorRef& t, const std::vector<int>& dims, bool keepdim) {
    begin();
    const auto& x = at(t);
    touch(x);
    if (x.sorted) fail("unsupported", "reducing an argsort", {}, "turn the order into ranks and compare");
    if (x.raw >= 0) uses_[x.raw] |= op == ReduceOp::Any || op == ReduceOp::All ? kUsedAsBool : kUsedAsFloat;
    std::vector<int> axes = dims;
    if (axes.empty())
        for (std::size_t k = 0; k < x.shape.size(); ++k) axes.push_back(static_cast<int>(k));
    const bool counts = (op == ReduceOp::Sum || op == ReduceOp::Prod) && !is_float(x.dtype);
    Expr body = counts ? pool_.cast(Type::Int, x.body) : x.body, pin = x.pin;
    if (op == ReduceOp::Any || op == ReduceOp::All) body = pool_.cast(Type::Bool, body), pin = nullptr;
    if (op == ReduceOp::Prod) pin = nullptr;
    if ((op == ReduceOp::Max || op == ReduceOp::Min) && x.dtype == DType::Bool)
        op = op == ReduceOp::Max ? ReduceOp::Any : ReduceOp::All;
    for (const int a : axes) {
        const Expr extent = x.shape[static_cast<std::size_t>(a)];
        if ((op == ReduceOp::Max || op == ReduceOp::Min) && is_int(extent, 0))
            fail("shape", "amax() and amin() of an empty axis");
        body = reduce_axis(op, body, a, extent);
        if (pin) pin = reduce_axis(op, pin, a, extent);
    }
    std::vector<Expr> shape, map(x.shape.size());
    for (std::size_t k = 0; k < x.shape.size(); ++k) {
        const bool gone = std::find(axes.begin(), axes.end(), static_cast<int>(k)) != axes.end();
        if (gone && !keepdim) continue;
        map[k] = pool_.index(static_cast<int>(shape.size()));
        shape.push_back(gone ? pool_.integer(1) : x.shape[k]);
    }
    const DType type = op == ReduceOp::Any || op == ReduceOp::All ? DType::Bool : counts ? DType::I64 : x.dtype;
    auto r = fresh(type, std::move(shape), pool_.substitute(body, map), x.inputs);
    if (pin) r->pin = pool_.substitute(pin, map);
    return r;
}

TensorRef SymbolicDomain::cumsum(const TensorRef& t, int dim) {
    begin();
    const auto& x = at(t);
    touch(x);
    if (x.raw >= 0) uses_[x.raw] |= kUsedAsInt;
    const int fresh_axis = kMaxIndex - 1;
    std::vector<Expr> map(static_cast<std::size_t>(dim) + 1);
    map.back() = pool_.index(fresh_axis);
    const Expr upto = pool_.apply(Op::Le, pool_.index(fresh_axis), pool_.index(dim));
    const Expr body = pool_.substitute(is_float(x.dtype) ? x.body : pool_.cast(Type::Int, x.body), map);
    const Expr zero = pool_.cast(body->type, pool_.integer(0));
    const Expr sum =
        pool_.reduce(ReduceOp::Sum, pool_.select(upto, body, zero), fresh_axis, x.shape[static_cast<std::size_t>(dim)]);
    return fresh(is_float(x.dtype) ? x.dtype : DType::I64, x.shape, sum, x.inputs);
}

TensorRef SymbolicDomain::contract(const std::vector<TensorRef>& operands, const std::vector<std::vector<int>>& labels,
                                   const std::vector<int>& out) {
    begin();
    std::vector<const SymbolicTensor*> x;
    std::uint64_t inputs = 0;
    for (const auto& t : operands) {
        x.push_back(&at(t));
        touch(*x.back());
        inputs |= x.back()->inputs;
        if (x.back()->raw >= 0) uses_[x.back()->raw] |= kUsedAsFloat;
    }
    const DType type = result_type(x);
    // every label gets an axis: the output's first, the summed ones behind
    std::vector<int> order = out;
    std::map<int, Expr> size;
    for (std::size_t k = 0; k < x.size(); ++k) {
        if (labels[k].size() != x[k]->shape.size())
            fail("shape", "a product of a tensor of rank " + std::to_string(x[k]->shape.size()) + " where rank " +
                              std::to_string(labels[k].size()) + " is expected");
        for (std::size_t m = 0; m < labels[k].size(); ++m) {
            const int l = labels[k][m];
            if (std::find(order.begin(), order.end(), l) == order.end()) order.push_back(l);
            const auto [it, first] = size.emplace(l, x[k]->shape[m]);
            if (first || is_int(x[k]->shape[m], 1)) continue;
            if (is_int(it->second, 1))
                it->second = x[k]->shape[m];
            else
                unify(it->second, x[k]->shape[m], "a product");
        }
    }
    if (order.size() > kMaxIndex - 2) fail("limit", "a product over too many axes");
    Expr body = nullptr;
    std::set<int> summed;
    for (std::size_t k = 0; k < x.size(); ++k) {
        std::vector<Expr> map;
        for (std::size_t m = 0; m < labels[k].size(); ++m) {
            const auto axis = std::find(order.begin(), order.end(), labels[k][m]) - order.begin();
            map.push_back(is_int(x[k]->shape[m], 1) ? pool_.integer(0) : pool_.index(static_cast<int>(axis)));
        }
        Expr e = pool_.substitute(convert(x[k]->body, x[k]->dtype, type), map);
        for (std::size_t m = order.size(); m-- > out.size();) { // what is summed of one operand alone is summed first
            const auto holds = [&](const std::vector<int>& l) {
                return std::find(l.begin(), l.end(), order[m]) != l.end();
            };
            if (!holds(labels[k]) || std::count_if(labels.begin(), labels.end(), holds) != 1) continue;
            e = reduce_axis(ReduceOp::Sum, pool_.cast(is_float(type) ? Type::Real : Type::Int, e), static_cast<int>(m),
                            size.at(order[m]));
            summed.insert(order[m]);
        }
        body = body ? pool_.mul(pool_.cast(is_float(type) ? Type::Real : Type::Int, body),
                                pool_.cast(is_float(type) ? Type::Real : Type::Int, e))
                    : e;
    }
    for (std::size_t k = order.size(); k-- > out.size();)
        if (!summed.contains(order[k])) body = reduce_axis(ReduceOp::Sum, body, static_cast<int>(k), size.at(order[k]));
    std::vector<Expr> shape;
    for (const int l : out) shape.push_back(size.at(l));
    return fresh(type, std::move(shape), body, inputs);
}

} // namespace cubridge::ir::spec
