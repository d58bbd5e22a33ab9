// Elementwise operators and casts on expressions of any type. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/expr/build.h"
#include <cmath>

namespace cubridge::ir {

namespace detail {

Expr negate(ExprPool& p, Expr e);

Expr build(ExprPool& p, Kind kind, Expr a, Expr b) {
    ExprNode n{.kind = kind, .type = a->type};
    n.args = {a, b};
    return p.intern(std::move(n));
}

Expr build_compare(ExprPool& p, Op op, Expr a, Expr b) {
    ExprNode n{.kind = Kind::Cmp, .type = Type::Bool, .op = op};
    n.args = b ? std::vector<Expr>{a, b} : std::vector<Expr>{a};
    return p.intern(std::move(n));
}

Expr build_fn(ExprPool& p, Kind fn, Op op, std::span<const Expr> x) {
    ExprNode n{.kind = fn, .type = x[0]->type, .op = op};
    n.args.assign(x.begin(), x.end());
    return p.intern(std::move(n));
}

namespace {

Expr apply_f32(ExprPool& p, Op op, std::span<const Expr> x) {
    bool constant = true;
    float v[3] = {};
    for (std::size_t k = 0; k < x.size(); ++k) {
        constant = constant && is_const(x[k]);
        v[k] = static_cast<float>(x[k]->real);
    }
    if (constant && info(op).f32) return p.f32(info(op).f32(v));
    if ((op == Op::Floor || op == Op::Ceil || op == Op::Trunc || op == Op::Round) && x[0]->kind == Kind::Cast &&
        x[0]->args[0]->type == Type::Int)
        return x[0];
    return build_fn(p, Kind::F32Fn, op, x);
}

Expr apply_int(ExprPool& p, Op op, std::span<const Expr> x) {
    switch (op) {
    case Op::Add: return p.isum(0, {{1, x[0]}, {1, x[1]}});
    case Op::Sub: return p.isum(0, {{1, x[0]}, {-1, x[1]}});
    case Op::Neg: return p.isum(0, {{-1, x[0]}});
    case Op::Mul: return int_mul(p, x[0], x[1]);
    case Op::FloorDiv: return int_floor_div(p, x[0], x[1]);
    case Op::Mod: return int_mod(p, x[0], x[1]);
    case Op::Pow: return int_pow(p, x[0], x[1]);
    case Op::Abs: return p.extremum(Kind::Max, {x[0], p.isum(0, {{-1, x[0]}})});
    case Op::Floor:
    case Op::Ceil:
    case Op::Trunc:
    case Op::Round: return x[0];
    default: break;
    }
    fail("type", std::string(info(op).torch) + " does not take integers here", {}, "convert with .float()");
}

Expr apply_real(ExprPool& p, Op op, std::span<const Expr> x) {
    switch (op) {
    case Op::Add: return p.rsum(0, {{1, x[0]}, {1, x[1]}});
    case Op::Sub: return p.rsum(0, {{1, x[0]}, {-1, x[1]}});
    case Op::Neg: return p.rsum(0, {{-1, x[0]}});
    case Op::Mul: return p.product(Type::Real, {{x[0], 1, 1}, {x[1], 1, 1}});
    case Op::Div: return p.product(Type::Real, {{x[0], 1, 1}, {x[1], -1, 1}});
    case Op::Sqrt: return p.product(Type::Real, {{x[0], 1, 2}});
    case Op::Rsqrt: return p.product(Type::Real, {{x[0], -1, 2}});
    case Op::Pow: return real_pow(p, x[0], x[1]);
    case Op::FloorDiv:
    case Op::Mod:
    case Op::Atan2: {
        const double v[2] = {x[0]->real, x[1]->real};
        if (is_const(x[0]) && is_const(x[1])) return p.real(info(op).real(v));
        return build_fn(p, Kind::Fn, op, x);
    }
    default: return real_fn(p, op, x[0]);
    }
}

} // namespace
} // namespace detail

Expr ExprPool::apply(Op op, std::span<const Expr> x) {
    if (op == Op::Where) return select(x[0], x[1], x[2]);
    const Type type = x[0]->type;
    if (type == Type::Bool) {
        switch (op) {
        case Op::And: return logical_and({x[0], x[1]});
        case Op::Or: return logical_or({x[0], x[1]});
        case Op::Not: return detail::negate(*this, x[0]);
        case Op::Xor:
        case Op::Ne: return logical_not(detail::compare(*this, Op::Eq, x[0], x[1]));
        case Op::Mul:
        case Op::Min: return cast(Type::Int, logical_and({x[0], x[1]}));
        case Op::Max: return cast(Type::Int, logical_or({x[0], x[1]}));
        default: break;
        }
        if (op >= Op::Lt && op <= Op::Eq) return detail::compare(*this, op, x[0], x[1]);
        std::vector<Expr> as_int;
        for (const Expr e : x) as_int.push_back(cast(Type::Int, e));
        return apply(op, as_int);
    }
    if (op >= Op::Lt && op <= Op::Ne) return detail::compare(*this, op, x[0], x[1]);
    if (op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Not)
        fail("unsupported", "bitwise operators take booleans here, not integers", {},
             "compare first: (a > 0) & (b > 0)");
    if ((op == Op::Min || op == Op::Max) && type != Type::F32)
        return extremum(op == Op::Min ? Kind::Min : Kind::Max, {x[0], x[1]});
    if (type == Type::F32) return detail::apply_f32(*this, op, x);
    return type == Type::Int ? detail::apply_int(*this, op, x) : detail::apply_real(*this, op, x);
}

Expr ExprPool::apply(Op op, Expr a, Expr b) {
    const Expr x[] = {a, b};
    return apply(op, std::span<const Expr>(x, 2));
}

Expr ExprPool::cast(Type to, Expr x) {
    const Type from = x->type;
    if (from == to) return x;
    if (to == Type::Bool)
        return logical_not(detail::compare(*this, Op::Eq, x,
                                           from == Type::Int   ? integer(0)
                                           : from == Type::F32 ? f32(0)
                                                               : real(0)));
    if (from == Type::Bool && to != Type::Int) return cast(to, cast(Type::Int, x));
    if (is_const(x)) {
        const double v = from == Type::Int || from == Type::Bool ? static_cast<double>(x->integer) : x->real;
        if (to == Type::Real) return real(v);
        if (to == Type::F32) return f32(static_cast<float>(v));
        if (from == Type::Bool) return integer(x->integer);
        if (v == v && std::fabs(v) < 9e15) return integer(static_cast<std::int64_t>(v));
        fail("domain", "a constant that is not finite is converted to an integer", {}, "clamp it first");
    }
    if (x->kind == Kind::Cast && x->args[0]->type == Type::Int && from != Type::Int) // sizes are far below 2^24
        return to == Type::Int ? x->args[0] : cast(to, x->args[0]);
    if (x->kind == Kind::Cast && from == Type::Real && to == Type::F32 && x->args[0]->type == Type::F32)
        return x->args[0];
    ExprNode n{.kind = Kind::Cast, .type = to};
    n.args = {x};
    return intern(std::move(n));
}

} // namespace cubridge::ir
