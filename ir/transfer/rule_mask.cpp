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

/// `x = where(condition, x, dropped)` as statements, with what is constant along rows and columns in front of it. j is
/// `columns`, of which there are `keys`.
std::vector<std::string> kept(Work& w, Expr keep, Expr keys, const std::string& columns) {
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
    divide(divide, inside);
    Limits limited = limits(pool, inside, keys);
    if (limited.all && limited.below && limited.joined.size() == 1 &&
        distribute(pool, limited.joined[0], limited.below))
        limited.below = nullptr;
    const NodePtr condition = written(local, columns, limited);
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
    for (const auto& x : kept(w, s.sparse, s.keys, columns)) far.body.push_back(line(x));
    for (const auto& x : kept(w, s.dense, w.part.keys, w.at.cols)) near.body.push_back(line(x));
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
    const auto made = kept(w, keep, w.part.keys, w.at.cols);
    const Spot at = statement(w);
    w.replace(at, made.back());
    for (std::size_t k = 0; k + 1 < made.size(); ++k) w.insert({at.block, at.at + k}, made[k]);
    w.applied("mask");
}

} // namespace cubridge::ir::transfer
