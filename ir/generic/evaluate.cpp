// SPDX-License-Identifier: Apache-2.0
#include "ir/generic/evaluate.h"
#include "ir/expr/narrow.h"
#include <algorithm>
#include <cmath>
#include <limits>

namespace cubridge::ir::generic {
namespace {

double extreme(bool most, double a, double b) {
    return a != a || (most ? a > b : a < b) ? a : b;
}

double typed(Type t, double x) {
    return t == Type::Bool ? (x != 0 ? 1 : 0) : t == Type::F32 ? static_cast<double>(static_cast<float>(x)) : x;
}

} // namespace

double reduced(ReduceOp op, double a, double b) {
    switch (op) {
    case ReduceOp::Sum: return a + b;
    case ReduceOp::Prod: return a * b;
    case ReduceOp::Max: return extreme(true, a, b);
    case ReduceOp::Min: return extreme(false, a, b);
    case ReduceOp::Any: return a != 0 || b != 0 ? 1 : 0;
    case ReduceOp::All: break;
    }
    return a != 0 && b != 0 ? 1 : 0;
}

double reduced_none(ReduceOp op, Type type) {
    const double inf = type == Type::Bool  ? 1
                       : type == Type::Int ? static_cast<double>(std::numeric_limits<std::int64_t>::max())
                                           : std::numeric_limits<double>::infinity();
    switch (op) {
    case ReduceOp::Sum:
    case ReduceOp::Any: return 0;
    case ReduceOp::Prod:
    case ReduceOp::All: return 1;
    case ReduceOp::Max: return type == Type::Bool ? 0 : -inf;
    case ReduceOp::Min: break;
    }
    return inf;
}

double PointEvaluator::sum(Expr e) {
    double s = e->type == Type::Int ? static_cast<double>(e->integer) : e->real;
    for (std::size_t k = 0; k < e->args.size(); ++k)
        s += (e->type == Type::Int ? static_cast<double>(e->icoef[k]) : e->rcoef[k]) * value(e->args[k]);
    return s;
}

double PointEvaluator::product(Expr e) {
    double over = 1, under = 1;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const double x = value(e->args[k]), power = std::fabs(static_cast<double>(e->num[k]));
        const double root = e->den[k] == 2 ? std::sqrt(x) : x;
        double y = 1;
        if (e->den[k] > 2)
            y = std::pow(x, power / static_cast<double>(e->den[k]));
        else
            for (double n = 0; n < power; ++n) y *= root;
        (e->num[k] < 0 ? under : over) *= y;
    }
    return over / under;
}

double PointEvaluator::reduce(Expr e) {
    const std::int64_t extent = integer(e->args[1]);
    auto& variable = bound_[static_cast<std::size_t>(e->number)];
    const std::int64_t before = variable;
    double r = reduced_none(e->reduce, e->type);
    for (variable = 0; variable < extent; ++variable) r = reduced(e->reduce, r, value(e->args[0]));
    variable = before;
    return r;
}

double PointEvaluator::cast(Expr e) {
    const double x = value(e->args[0]);
    if (e->type == Type::F32) return static_cast<double>(static_cast<float>(x));
    if (e->type != Type::Int) return x;
    return static_cast<double>(narrowed(x));
}

double PointEvaluator::value(Expr e) {
    const auto at = [&](std::size_t k) { return value(e->args[k]); };
    switch (e->kind) {
    case Kind::Const: return e->type == Type::Bool || e->type == Type::Int ? static_cast<double>(e->integer) : e->real;
    case Kind::Index: return static_cast<double>(index[static_cast<std::size_t>(e->number)]);
    case Kind::Bound: return static_cast<double>(bound_[static_cast<std::size_t>(e->number)]);
    case Kind::Dim: return static_cast<double>(dim(e->number));
    case Kind::Arg: return typed(e->type, arg(e));
    case Kind::Load: {
        std::vector<std::int64_t> where;
        for (const Expr a : e->args) where.push_back(integer(a));
        return typed(e->type, load(e, where));
    }
    case Kind::Table: {
        const ConstTable& t = pool->table(e->number);
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            offset = offset * t.shape[k] + std::clamp<std::int64_t>(integer(e->args[k]), 0, t.shape[k] - 1);
        return t.values[static_cast<std::size_t>(offset)];
    }
    case Kind::Sum: return sum(e);
    case Kind::Product: return product(e);
    case Kind::FloorDiv:
    case Kind::Mod: {
        const std::int64_t x[] = {integer(e->args[0]), integer(e->args[1])};
        return static_cast<double>(info(e->kind == Kind::Mod ? Op::Mod : Op::FloorDiv).integer(x));
    }
    case Kind::Min:
    case Kind::Max: {
        double r = at(0);
        for (std::size_t k = 1; k < e->args.size(); ++k) r = extreme(e->kind == Kind::Max, r, at(k));
        return r;
    }
    case Kind::Fn: {
        double x[3] = {};
        for (std::size_t k = 0; k < e->args.size(); ++k) x[k] = at(k);
        return info(e->op).real(x);
    }
    case Kind::F32Fn: {
        float x[3] = {};
        for (std::size_t k = 0; k < e->args.size(); ++k) x[k] = static_cast<float>(at(k));
        return static_cast<double>(info(e->op).f32(x));
    }
    case Kind::Cmp: {
        const double x = at(0), y = e->args.size() == 1 ? 0 : at(1);
        return e->op == Op::Lt ? x < y : e->op == Op::Le ? x <= y : x == y;
    }
    case Kind::And: return std::all_of(e->args.begin(), e->args.end(), [&](Expr a) { return value(a) != 0; });
    case Kind::Or: return std::any_of(e->args.begin(), e->args.end(), [&](Expr a) { return value(a) != 0; });
    case Kind::Not: return at(0) == 0;
    case Kind::Select: return at(0) != 0 ? at(1) : at(2);
    case Kind::Cast: return cast(e);
    case Kind::Reduce: return reduce(e);
    }
    return 0;
}

} // namespace cubridge::ir::generic
