// Scores that a tanh caps, most of them far below the cap; logistic weights whose exponents are small.
// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/rules.h"
#include <cstdlib>
#include <optional>

namespace cubridge::ir::transfer {
namespace {

constexpr double kSmall = 0.5;   // of tanh_small (docs/cuir.md)
constexpr double kExponent = 21; // of logistic_small, to the base e

bool is_score(Expr x) {
    return x->kind == Kind::Load && x->number == kScore;
}

/// Powers of it become statements of their own, which neither branch would hold.
bool is_power_of(Expr x, Expr cap) {
    if (x->kind != Kind::Product) return false;
    for (std::size_t k = 0; k < x->args.size(); ++k)
        if (std::abs(x->num[k]) != 1 && contains(x->args[k], [&](Expr y) { return y == cap; })) return true;
    return false;
}

/// The only tanh of elements that read the score; null: none, or several.
Expr cap_of(Writer& writer, Expr value) {
    Expr only = nullptr;
    bool several = false;
    contains(value, [&](Expr x) {
        if (x->kind != Kind::Fn || x->op != Op::Tanh || !contains(x, is_score) ||
            writer.level(x->args[0]) != Level::Tile)
            return false;
        several = only != nullptr;
        only = x;
        return several;
    });
    if (!only || several || contains(value, [&](Expr x) { return is_power_of(x, only); })) return nullptr;
    return only;
}

/// constant + factor * inner.
struct Affine {
    Expr constant, factor;
};
std::optional<Affine> affine_in(ExprPool& pool, Expr e, Expr inner) {
    const auto within = [&](Expr x) { return contains(x, [&](Expr y) { return y == inner; }); };
    if (e == inner) return Affine{pool.real(0), pool.real(1)};
    if (!within(e)) return Affine{e, pool.real(0)};
    if (e->kind == Kind::Sum && e->type == Type::Real) {
        std::vector<std::pair<double, Expr>> constant, factor;
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const auto term = affine_in(pool, e->args[k], inner);
            if (!term) return std::nullopt;
            constant.emplace_back(e->rcoef[k], term->constant);
            factor.emplace_back(e->rcoef[k], term->factor);
        }
        return Affine{pool.rsum(e->real, std::move(constant)), pool.rsum(0, std::move(factor))};
    }
    if (e->kind != Kind::Product) return std::nullopt;
    std::vector<ExprPool::Power> rest;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        if (e->args[k] == inner && e->num[k] == 1 && e->den[k] == 1) continue;
        if (within(e->args[k])) return std::nullopt;
        rest.push_back({e->args[k], e->num[k], e->den[k]});
    }
    return Affine{pool.real(0), pool.product(Type::Real, rest)};
}

/// Where the value is a logistic weight: the most that `inner`, a part of it, may be for its exponent to stay
/// within 31. Null: another value, or bounds that are not the same in the whole tile.
Expr most_of_logistic(ExprPool& pool, Writer& writer, Expr value, Expr inner) {
    if (!inner || value->kind != Kind::Fn || value->op != Op::Sigmoid) return nullptr;
    const auto a = affine_in(pool, value->args[0], inner);
    if (!a || writer.level(a->constant) > Level::Scalar || writer.level(a->factor) > Level::Scalar) return nullptr;
    const Expr left = pool.rsum(kExponent, {{-1, pool.apply(Op::Abs, a->constant)}});
    return pool.product(Type::Real, {{left, 1, 1}, {pool.apply(Op::Abs, a->factor), -1, 1}});
}

Expr score_in(Expr value) {
    Expr score = nullptr;
    contains(value, [&](Expr x) {
        if (is_score(x)) score = x;
        return score != nullptr;
    });
    return score;
}

/// An element whose |argument| is more than `most`, or NaN. A score times a factor is compared with `most` over the
/// factor: products that both the test and a branch read would be kept in registers from one to the other, an array as
/// large as the tile.
NodePtr beyond(ExprPool& pool, Writer& writer, Expr argument, Expr most) {
    double coefficient = 1;
    Expr e = argument;
    if (e->kind == Kind::Sum && e->real == 0 && e->args.size() == 1) coefficient = e->rcoef[0], e = e->args[0];
    std::vector<ExprPool::Power> inverse;
    Expr score = is_score(e) ? e : nullptr;
    if (e->kind == Kind::Product)
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            if (is_score(e->args[k]) && e->num[k] == 1 && e->den[k] == 1)
                score = e->args[k];
            else
                inverse.push_back({e->args[k], -e->num[k], e->den[k]});
        }
    const Expr rest = pool.product(Type::Real, inverse);
    const auto exceeds = [&](Expr x, Expr limit) {
        return parse("~(" + text(compare(call("abs", {writer.write(x)}), "<=", writer.write(limit))) + ")");
    };
    if (!score || writer.level(rest) > Level::Scalar) return exceeds(by_exp2(pool, argument), most);
    const Expr over = pool.apply(Op::Abs, pool.rsum(0, {{1 / coefficient, rest}}));
    return exceeds(score, pool.product(Type::Real, {{most, 1, 1}, {over, 1, 1}}));
}

} // namespace

std::vector<cuir::Statement> score_statements(Work& w, Local& local, Expr value) {
    ExprPool& pool = w.launch.pool;
    Writer& writer = local.writer;
    const auto x_is = [&](Expr e) { return line(w.at.x + " = " + text(writer.write(by_exp2(pool, e)))); };
    if (auto flat = flat_tiles(w, local, value); !flat.empty()) return flat;
    const Expr cap = cap_of(writer, value);
    // A weight that is summed leaves no registers for two ways of computing it.
    const bool weight = w.part.weights.kind == Weights::Kind::Pointwise;
    const Expr inner = cap || !weight ? cap : score_in(value);
    const Expr most = weight ? most_of_logistic(pool, writer, value, inner) : nullptr;
    if (!cap && !most) return {x_is(value)};
    const std::string far = w.launch.fresh("far");
    Expr limit = most, near = value;
    if (cap) { // |tanh x| <= |x|: what bounds the argument bounds the cap
        limit = most ? pool.apply(Op::Min, pool.real(kSmall), most) : pool.real(kSmall);
        const Expr small = pool.load(kTanhSmall, Type::Real, {cap->args[0]});
        near = pool.rewrite(value, [&](Expr x) { return x == cap ? small : x; });
    }
    const NodePtr test = call("any", {beyond(pool, writer, cap ? cap->args[0] : inner, limit)});
    if (most) {
        const Expr exponent = scaled(pool, pool.rsum(0, {{-1, near->args[0]}}), log2e(pool));
        near = pool.load(kLogisticSmall, Type::Real, {exponent});
    }
    std::vector<cuir::Statement> out{line(far + " = " + text(test)), line("if " + far + ":"), {}};
    out[1].body.push_back(x_is(value));
    out[2].kind = cuir::Statement::Kind::Else;
    out[2].body.push_back(x_is(near));
    w.applied(cap ? "cap: scores far below it" : "logistic weights: scores within bounds");
    return out;
}

} // namespace cubridge::ir::transfer
