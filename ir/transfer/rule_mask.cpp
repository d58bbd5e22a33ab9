// The statement that drops scores. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

/// j < keys follows from each alternative of keep and i < rows.
bool bounds_keys(ExprPool& pool, Expr keep, Expr keys, Expr rows) {
    const auto bounds = [&](Expr a) { return bounds_keys(pool, a, keys, rows); };
    if (keep->kind == Kind::Or) return std::all_of(keep->args.begin(), keep->args.end(), bounds);
    if (keep->kind == Kind::And) return std::any_of(keep->args.begin(), keep->args.end(), bounds);
    if (keep->kind != Kind::Cmp || keep->op != Op::Le || keep->args.size() != 1) return false;
    // j - r(i) <= 0; the largest r, at i = rows - 1, is at most keys - 1
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
    at[axis::i] = slope > 0 ? pool.sub(rows, pool.integer(1)) : pool.integer(0);
    const Expr gap = pool.sub(pool.sub(keys, pool.integer(1)), pool.substitute(r, at));
    return is_const(gap) && gap->integer >= 0;
}

} // namespace

void mask_statement(Work& w) {
    ExprPool& pool = w.launch.pool;
    w.part.keep = derive(w, w.part.keep);
    const Expr keep = w.strided ? w.strided->keep : w.part.keep;
    const bool softmax = w.part.weights.kind == Weights::Kind::Softmax;
    if (is_true(keep) && softmax) return;
    const Places& at = w.at;
    const Expr inside = !is_true(keep) && bounds_keys(pool, keep, w.part.keys, w.row_extent)
                            ? keep
                            : pool.logical_and(pool.apply(Op::Lt, pool.index(axis::j), w.part.keys), keep);
    Local local(w, Local::Where::Attend);
    Nodes conditions;
    // the bound of the keys first, as the expert has it
    NodePtr condition;
    if (inside != keep || is_true(keep)) condition = compare(name(at.cols), "<", w.keys_for(at.attend_params[1]));
    const auto also = [&](Expr e) {
        const NodePtr x = local.writer.write(e);
        condition = condition ? binary("&", condition, x) : x;
    };
    if (keep->kind == Kind::And)
        for (const Expr a : keep->args) also(a);
    else if (!is_true(keep))
        also(keep);
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
