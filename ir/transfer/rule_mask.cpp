// The statement that drops scores. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

/// j < keys follows from each alternative of keep and i < Sq.
bool bounds_keys(ExprPool& pool, Expr keep, Expr keys) {
    if (keep->kind == Kind::Or)
        return std::all_of(keep->args.begin(), keep->args.end(), [&](Expr a) { return bounds_keys(pool, a, keys); });
    if (keep->kind == Kind::And)
        return std::any_of(keep->args.begin(), keep->args.end(), [&](Expr a) { return bounds_keys(pool, a, keys); });
    if (keep->kind != Kind::Cmp || keep->op != Op::Le || keep->args.size() != 1) return false;
    // j - r(i) <= 0; the largest r, at i = Sq - 1, is at most keys - 1
    const Expr r = pool.sub(pool.index(axis::j), keep->args[0]);
    if ((r->free & index_bit(axis::j)) != 0) return false;
    std::int64_t slope = 0;
    for (const auto& [c, t] : as_sum(r).terms) {
        if (t == pool.index(axis::i))
            slope = c;
        else if ((t->free & index_bit(axis::i)) != 0)
            return false;
    }
    std::vector<Expr> at(kMaxIndex, nullptr);
    at[axis::i] = slope > 0 ? pool.sub(pool.dim(dims::Sq), pool.integer(1)) : pool.integer(0);
    const Expr gap = pool.sub(pool.sub(keys, pool.integer(1)), pool.substitute(r, at));
    return is_const(gap) && gap->integer >= 0;
}

/// What a condition says of the keys of one row: below a limit, from a limit on, or the same of all.
struct Cut {
    enum class Side { None, Below, From, Flat } side = Side::None;
    Expr limit = nullptr; ///< Flat: the condition
};

Cut cut_of(ExprPool& pool, Expr e) {
    using Side = Cut::Side;
    const auto of_row = [](Expr x) { return (x->free & index_bit(axis::j)) == 0; };
    if (of_row(e)) return {Side::Flat, e};
    if (e->kind != Kind::Cmp || e->op != Op::Le || e->args.size() != 1) return {};
    const Expr j = pool.index(axis::j);
    if (const Expr most = pool.sub(j, e->args[0]); of_row(most)) // j - most <= 0
        return {Side::Below, pool.add(most, pool.integer(1))};
    if (const Expr least = pool.add(e->args[0], j); of_row(least)) return {Side::From, least}; // least - j <= 0
    return {};
}

/// A condition with one limit for each side of a row's keys wherever conditions join: a comparison an element for each,
/// and a minimum or maximum a row. It is written as statements, since expressions have such minima taken apart again.
struct Limits {
    bool all = true; ///< joined by and, else by or
    Expr below = nullptr, from = nullptr, flat = nullptr;
    std::vector<Limits> joined; ///< the other way, of more than one limit
    std::vector<Expr> rest;

    int sides() const { return (below != nullptr) + (from != nullptr) + (flat != nullptr); }
    bool single() const { return joined.empty() && rest.empty() && sides() == 1; }
};

void add(ExprPool& pool, Limits& to, const Cut& cut) {
    const auto join = [&](Expr& side, Op all, Op any) {
        side = side ? pool.apply(to.all ? all : any, side, cut.limit) : cut.limit;
    };
    if (cut.side == Cut::Side::Below) join(to.below, Op::Min, Op::Max);
    if (cut.side == Cut::Side::From) join(to.from, Op::Max, Op::Min);
    if (cut.side == Cut::Side::Flat) join(to.flat, Op::And, Op::Or);
}

/// What is the same of all keys becomes part of a limit. Keys are from 0 to `keys`.
void settle(ExprPool& pool, Limits& x, Expr keys) {
    if (!x.flat || (!x.below && !x.from)) return;
    const Expr zero = pool.integer(0);
    if (x.below)
        x.below = x.all ? pool.select(x.flat, x.below, zero) : pool.select(x.flat, keys, x.below);
    else
        x.from = x.all ? pool.select(x.flat, x.from, keys) : pool.select(x.flat, zero, x.from);
    x.flat = nullptr;
}

Limits limits(ExprPool& pool, Expr e, Expr keys) {
    Limits out;
    if (e->kind != Kind::And && e->kind != Kind::Or) {
        const Cut cut = cut_of(pool, e);
        if (cut.side == Cut::Side::None) out.rest.push_back(e);
        add(pool, out, cut);
        return out;
    }
    out.all = e->kind == Kind::And;
    for (const Expr a : e->args) {
        Limits part = limits(pool, a, keys);
        if (part.single()) {
            for (const auto& [side, limit] :
                 {std::pair{Cut::Side::Below, part.below}, {Cut::Side::From, part.from}, {Cut::Side::Flat, part.flat}})
                if (limit) add(pool, out, {side, limit});
        } else if (part.joined.empty() && part.sides() == 0 && part.rest.size() == 1) {
            out.rest.push_back(part.rest[0]);
        } else {
            out.joined.push_back(std::move(part));
        }
    }
    settle(pool, out, keys);
    return out;
}

/// `below` joins every alternative of an or where each has such a limit already.
bool distribute(ExprPool& pool, Limits& any, Expr below) {
    const auto has = [](const Limits& a) { return a.below != nullptr; };
    if (any.all || any.from || any.flat || !any.rest.empty() || !std::all_of(any.joined.begin(), any.joined.end(), has))
        return false;
    if (any.below) any.below = pool.apply(Op::Min, any.below, below);
    for (auto& a : any.joined) a.below = pool.apply(Op::Min, a.below, below);
    return true;
}

NodePtr written(Local& local, const std::string& cols, const Limits& x) {
    NodePtr out;
    const auto also = [&](const NodePtr& n) { out = out ? binary(x.all ? "&" : "|", out, n) : n; };
    if (x.below) also(compare(name(cols), "<", local.writer.write(x.below)));
    if (x.from) also(compare(name(cols), ">=", local.writer.write(x.from)));
    for (const auto& part : x.joined) also(written(local, cols, part));
    for (const Expr e : x.rest) also(local.writer.write(e));
    if (x.flat) also(local.writer.write(x.flat));
    return out;
}

} // namespace

void mask_statement(Work& w) {
    ExprPool& pool = w.launch.pool;
    w.part.keep = derive(w, w.part.keep);
    const Expr keep = w.part.keep;
    const bool softmax = w.part.weights.kind == Weights::Kind::Softmax;
    if (is_true(keep) && softmax) return;
    const Places& at = w.at;
    const Expr inside = !is_true(keep) && bounds_keys(pool, keep, w.part.keys)
                            ? keep
                            : pool.logical_and(pool.apply(Op::Lt, pool.index(axis::j), w.part.keys), keep);
    Limits limited = limits(pool, inside, w.part.keys);
    if (limited.all && limited.below && limited.joined.size() == 1 &&
        distribute(pool, limited.joined[0], limited.below))
        limited.below = nullptr;
    Local local(w, Local::Where::Attend);
    const NodePtr condition = written(local, at.cols, limited);
    // places are found after the expressions are written: what is hoisted moves statements
    const Spot branch = first(w.attend(), [&](const cuir::Statement& s) {
        return s.kind == cuir::Statement::Kind::If && base(s.node->items[0]) == at.masked;
    });
    const Spot statement = w.in(branch->body, at.x);
    w.replace(statement, at.x + " = where(" + text(condition) + ", " + at.x + (softmax ? ", -inf)" : ", 0.0)"));
    std::size_t k = statement.at;
    for (const auto& s : local.made) w.insert({statement.block, k++}, s);
    w.applied("mask");
}

} // namespace cubridge::ir::transfer
