// Scores that a tanh caps, most of them far below the cap. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/rules.h"
#include <cstdlib>
#include <optional>

namespace cubridge::ir::transfer {
namespace {

constexpr double kSmall = 0.5;   // of tanh_small (docs/cuir.md)
constexpr double kExponent = 43; // of logistic_small: 63, of 2

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

/// Where the value is a logistic weight of the cap: the most that the cap's argument may be for its exponent to stay
/// within 63, and at most kSmall. Null: another value.
Expr most_of_logistic(ExprPool& pool, Writer& writer, Expr value, Expr cap) {
    if (value->kind != Kind::Fn || value->op != Op::Sigmoid) return nullptr;
    const auto a = affine_in(pool, value->args[0], cap);
    if (!a || writer.level(a->constant) > Level::Scalar || writer.level(a->factor) > Level::Scalar) return nullptr;
    const Expr left = pool.rsum(kExponent, {{-1, pool.apply(Op::Abs, a->constant)}}); // |tanh x| <= |x|
    const Expr most = pool.product(Type::Real, {{left, 1, 1}, {pool.apply(Op::Abs, a->factor), -1, 1}});
    return pool.apply(Op::Min, pool.real(kSmall), most);
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
    const auto x_is = [&](Expr e) { return line(w.at.x + " = " + text(local.writer.write(by_exp2(pool, e)))); };
    const Expr cap = cap_of(local.writer, value);
    if (!cap) return {x_is(value)};
    const std::string far = w.launch.fresh("far");
    const Expr most = most_of_logistic(pool, local.writer, value, cap);
    const NodePtr test = call("any", {beyond(pool, local.writer, cap->args[0], most ? most : pool.real(kSmall))});
    std::vector<cuir::Statement> out{line(far + " = " + text(test)), line("if " + far + ":"), {}};
    out[1].body.push_back(x_is(value));
    out[2].kind = cuir::Statement::Kind::Else;
    const Expr small = pool.load(kTanhSmall, Type::Real, {cap->args[0]});
    Expr near = pool.rewrite(value, [&](Expr x) { return x == cap ? small : x; });
    if (most)
        near = pool.load(kLogisticSmall, Type::Real, {scaled(pool, pool.rsum(0, {{-1, near->args[0]}}), log2e(pool))});
    out[2].body.push_back(x_is(near));
    w.applied("cap: scores far below it");
    return out;
}

} // namespace cubridge::ir::transfer
