// The statement that drops scores. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>
#include <map>

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

/// `x = where(condition, x, dropped)` as statements, with what is constant along rows and columns in front of it. j is
/// `columns`, of which there are `count`.
std::vector<std::string> kept(Work& w, Expr keep, Expr keys, const std::string& columns, const NodePtr& count) {
    ExprPool& pool = w.launch.pool;
    const Expr inside = !is_true(keep) && bounds_keys(pool, keep, keys, w.row_extent)
                            ? keep
                            : pool.logical_and(pool.apply(Op::Lt, pool.index(axis::j), keys), keep);
    Local local(w, Local::Where::Attend);
    local.writer.index[axis::j] = name(columns);
    // quotients and remainders of rows and of the item once a tile: conditions are decided one behind the other
    std::map<Expr, std::string> names;
    local.writer.named = [&names, named = local.writer.named](Expr e) -> NodePtr {
        const auto it = names.find(e);
        return it != names.end() ? name(it->second) : named(e);
    };
    std::vector<std::string> out;
    const auto divide = [&](auto&& self, Expr e) -> void {
        const bool division =
            (e->kind == Kind::FloorDiv || e->kind == Kind::Mod) && local.writer.level(e) <= Level::Row;
        if (!division || is_const(e->args[0])) {
            for (const Expr a : e->args) self(self, a);
        } else if (names.count(e) == 0) {
            const std::string value = text(local.writer.make(e)), n = w.launch.fresh("limit");
            out.insert(out.end(), local.made.begin(), local.made.end());
            local.made.clear();
            out.push_back(n + " = " + value);
            names.emplace(e, n);
        }
    };
    divide(divide, keep);
    // the bound of the keys first, as the expert has it
    NodePtr condition;
    if (inside != keep || is_true(keep)) {
        NodePtr bound = count;
        if (count->kind == syntax::Kind::Call) {
            bound = name(w.launch.fresh("keys"));
            out.push_back(bound->text + " = " + text(count));
        }
        condition = compare(name(columns), "<", bound);
    }
    const auto also = [&](Expr e) {
        const NodePtr x = local.writer.write(e);
        condition = condition ? binary("&", condition, x) : x;
    };
    if (keep->kind == Kind::And)
        for (const Expr a : keep->args) also(a);
    else if (!is_true(keep))
        also(keep);
    const char* dropped = w.part.weights.kind == Weights::Kind::Softmax ? ", -inf)" : ", 0.0)";
    out.insert(out.end(), local.made.begin(), local.made.end());
    out.push_back(w.at.x + " = where(" + text(condition) + ", " + w.at.x + dropped);
    return out;
}

Spot statement(Work& w) {
    const Spot branch = first(w.attend(), [&](const cuir::Statement& s) {
        return s.kind == cuir::Statement::Kind::If && base(s.node->items[0]) == w.at.masked;
    });
    return w.in(branch->body, w.at.x);
}

/// A masked tile asks what its kind asks; strided ones by the numbers of their own keys.
void by_kind(Work& w) {
    const auto& s = *w.strided;
    const std::string n = w.at.attend_params[3], columns = w.launch.fresh("column");
    cuir::Statement far = line("if " + text(compare(name(n), ">=", s.dense_tiles)) + ":"), near;
    near.kind = cuir::Statement::Kind::Else;
    const NodePtr first = binary("*", binary("-", name(n), s.dense_tiles), name("BN"));
    far.body.push_back(line(columns + " = " + text(call("cols", {first, name("BN")}))));
    for (const auto& x : kept(w, s.sparse, s.keys, columns, s.count)) far.body.push_back(line(x));
    for (const auto& x : kept(w, s.dense, w.part.keys, w.at.cols, w.keys_for(w.at.attend_params[1])))
        near.body.push_back(line(x));
    const Spot at = statement(w); // found after the expressions are written: what is hoisted moves statements
    *at = std::move(far);
    at.block->insert(at.block->begin() + static_cast<std::ptrdiff_t>(at.at) + 1, std::move(near));
}

} // namespace

void mask_statement(Work& w) {
    w.part.keep = derive(w, w.part.keep);
    const Expr keep = w.part.keep;
    if (is_true(keep) && w.part.weights.kind == Weights::Kind::Softmax) return;
    if (w.strided) {
        by_kind(w);
        return w.applied("mask");
    }
    const auto made = kept(w, keep, w.part.keys, w.at.cols, w.keys_for(w.at.attend_params[1]));
    const Spot at = statement(w);
    w.replace(at, made.back());
    for (std::size_t k = 0; k + 1 < made.size(); ++k) w.insert({at.block, at.at + k}, made[k]);
    w.applied("mask");
}

} // namespace cubridge::ir::transfer
