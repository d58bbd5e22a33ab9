// Scores that a tanh caps, most of them far below the cap. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/rules.h"
#include <cstdlib>

namespace cubridge::ir::transfer {
namespace {

constexpr double kSmall = 0.5; // of tanh_small (docs/cuir.md)

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

/// |argument| > 0.5 of elements. A score times a factor is compared with 0.5 over the factor: products that both the
/// test and a branch read would be kept in registers from one to the other, an array as large as the tile.
NodePtr beyond(ExprPool& pool, Writer& writer, Expr argument) {
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
    if (!score || writer.level(rest) > Level::Scalar)
        return compare(call("abs", {writer.write(by_exp2(pool, argument))}), ">", real(kSmall));
    const Expr limit = pool.apply(Op::Abs, pool.rsum(0, {{kSmall / coefficient, rest}}));
    return compare(call("abs", {writer.write(score)}), ">", writer.write(limit));
}

} // namespace

std::vector<cuir::Statement> score_statements(Work& w, Local& local, Expr value) {
    ExprPool& pool = w.launch.pool;
    const auto x_is = [&](Expr e) { return line(w.at.x + " = " + text(local.writer.write(by_exp2(pool, e)))); };
    const Expr cap = cap_of(local.writer, value);
    if (!cap) return {x_is(value)};
    const std::string far = w.launch.fresh("far");
    const NodePtr test = call("any", {beyond(pool, local.writer, cap->args[0])});
    std::vector<cuir::Statement> out{line(far + " = " + text(test)), line("if " + far + ":"), {}};
    out[1].body.push_back(x_is(value));
    out[2].kind = cuir::Statement::Kind::Else;
    const Expr small = pool.load(kTanhSmall, Type::Real, {cap->args[0]});
    out[2].body.push_back(x_is(pool.rewrite(value, [&](Expr x) { return x == cap ? small : x; })));
    w.applied("cap: scores far below it");
    return out;
}

} // namespace cubridge::ir::transfer
