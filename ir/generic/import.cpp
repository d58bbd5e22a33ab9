// SPDX-License-Identifier: Apache-2.0
#include "ir/generic/import.h"
#include <algorithm>

namespace cubridge::ir::generic {
namespace {

/// Bound(n) of the text is Index(3 + n) while its Reduce is being rebuilt: free for that, outputs have four axes.
int variable_of(int bound) {
    if (bound < 1 || 3 + bound >= kMaxIndex) fail("unsupported", "reductions are nested more than 12 deep");
    return 3 + bound;
}

bool contains(Expr e, int dim) {
    std::unordered_set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (!seen.insert(x).second) return false;
        if (x->kind == Kind::Dim && x->number == dim) return true;
        return std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}

} // namespace

Import::Import(ExprPool& to, const Scalar& scalar, const Request& request, const Heads& heads, HeadsAre mode)
    : to_(to), scalar_(scalar), request_(request), heads_(heads), mode_(mode) {
    const auto define = [&](Expr size, Expr as) {
        if (size->kind == Kind::Dim && dims::is_input(size->number) && !contains(as, size->number))
            defined_.emplace(size->number, as);
    };
    for (const auto& f : scalar.facts) {
        if (f.kind != Fact::Kind::Equal) continue;
        define(f.left, f.right);
        define(f.right, f.left);
    }
}

Expr Import::operator()(Expr e) {
    if (const auto it = done_.find(e); it != done_.end()) return it->second;
    const Expr r = node(e);
    done_.emplace(e, r);
    return r;
}

Expr Import::units() const {
    const Expr here = to_.dim(kUnits);
    return mode_ == HeadsAre::FromZero ? to_.add(here, to_.dim(kFirstUnit)) : here;
}

Expr Import::dim(int number) {
    const bool tail = request_.rows == Request::Rows::Tail;
    const auto heads = [&](std::int64_t per_unit) {
        if (mode_ == HeadsAre::Given) return to_.integer(request_.heads * per_unit / heads_.q);
        return to_.mul(to_.integer(per_unit), units());
    };
    switch (number) {
    case dims::B:
    case dims::kB:
    case dims::vB: return to_.dim(dims::B);
    case dims::Hq: return heads(heads_.q);
    case dims::Hk: return heads(heads_.k);
    case dims::Hv: return heads(heads_.v);
    case dims::Sq: return to_.dim(tail ? dims::Sk : dims::Sq);
    case dims::Sk:
    case dims::vS: return to_.dim(dims::Sk);
    case dims::D:
    case dims::kD: return to_.integer(request_.head_dim);
    case dims::Dv: return to_.integer(request_.head_dim_v);
    default: break;
    }
    if (!dims::is_input(number)) fail("unsupported", "a size without a meaning: " + dims::name(number));
    if (const auto it = defined_.find(number); it != defined_.end() && busy_.insert(number).second) {
        const Expr r = (*this)(it->second);
        busy_.erase(number);
        return r;
    }
    return to_.dim(number);
}

Expr Import::load(Expr e, std::vector<Expr> at) {
    if (e->number > 2) return to_.load(e->number, e->type, std::move(at));
    if (at.size() != 4) fail("unsupported", "query, key and value are read with four indices");
    const std::int64_t heads[3] = {heads_.q, heads_.k, heads_.v};
    at[1] = to_.isum(0, {{1, at[1]}, {-heads[e->number], to_.dim(kFirstUnit)}});
    if (e->number == 0 && request_.rows == Request::Rows::Tail)
        at[2] = to_.isum(0, {{1, at[2]}, {-1, to_.dim(dims::Sk)}, {1, to_.dim(dims::Sq)}});
    return to_.load(e->number, e->type, std::move(at));
}

Expr Import::reduce(Expr e) {
    const int variable = variable_of(e->number);
    const Expr body = (*this)(e->args[0]);
    return to_.reduce(e->reduce, body, variable, (*this)(e->args[1]));
}

Expr Import::node(Expr e) {
    if (e->kind == Kind::Reduce) return reduce(e);
    std::vector<Expr> x;
    x.reserve(e->args.size());
    for (const Expr a : e->args) x.push_back((*this)(a));
    switch (e->kind) {
    case Kind::Const:
        if (e->type == Type::Bool) return to_.boolean(e->integer != 0);
        if (e->type == Type::Int) return to_.integer(e->integer);
        return e->type == Type::F32 ? to_.f32(static_cast<float>(e->real)) : to_.real(e->real);
    case Kind::Index:
        if (e->number == 1) return to_.isum(0, {{1, to_.index(1)}, {heads_.out, to_.dim(kFirstUnit)}});
        if (e->number == 2 && request_.rows == Request::Rows::Tail)
            return to_.isum(0, {{1, to_.index(2)}, {1, to_.dim(dims::Sk)}, {-1, to_.dim(dims::Sq)}});
        return to_.index(e->number);
    case Kind::Bound: return to_.index(variable_of(e->number));
    case Kind::Dim: return dim(e->number);
    case Kind::Arg: return to_.arg(e->number, e->type);
    case Kind::Load: return load(e, std::move(x));
    case Kind::Table: {
        const auto [it, fresh] = tables_.emplace(e->number, 0);
        if (fresh) it->second = to_.add_table(scalar_.pool->table(e->number));
        return to_.table(it->second, std::move(x));
    }
    case Kind::Sum:
        if (e->type == Type::Int) {
            std::vector<std::pair<std::int64_t, Expr>> terms;
            for (std::size_t k = 0; k < x.size(); ++k) terms.emplace_back(e->icoef[k], x[k]);
            return to_.isum(e->integer, std::move(terms));
        } else {
            std::vector<std::pair<double, Expr>> terms;
            for (std::size_t k = 0; k < x.size(); ++k) terms.emplace_back(e->rcoef[k], x[k]);
            return to_.rsum(e->real, std::move(terms));
        }
    case Kind::Product: {
        std::vector<ExprPool::Power> factors;
        for (std::size_t k = 0; k < x.size(); ++k) factors.push_back({x[k], e->num[k], e->den[k]});
        return to_.product(e->type, std::move(factors));
    }
    case Kind::FloorDiv: return to_.apply(Op::FloorDiv, x);
    case Kind::Mod: return to_.apply(Op::Mod, x);
    case Kind::Min:
    case Kind::Max: return to_.extremum(e->kind, std::move(x));
    case Kind::Fn:
    case Kind::F32Fn: return to_.apply(e->op, x);
    case Kind::Cmp:
        if (x.size() == 1) x.push_back(to_.integer(0));
        return to_.apply(e->op, x);
    case Kind::And: return to_.logical_and(std::move(x));
    case Kind::Or: return to_.logical_or(std::move(x));
    case Kind::Not: return to_.logical_not(x[0]);
    case Kind::Select: return to_.select(x[0], x[1], x[2]);
    case Kind::Cast: return to_.cast(e->type, x[0]);
    case Kind::Reduce: break;
    }
    return e;
}

} // namespace cubridge::ir::generic
