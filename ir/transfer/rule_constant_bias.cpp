// Tiles so far from the diagonal that a bias by distance is one value on all of their pairs.
// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/mask/mask.h"
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

constexpr std::uint64_t kTile =
    index_bit(mask::tile::i0) | index_bit(mask::tile::i1) | index_bit(mask::tile::j0) | index_bit(mask::tile::j1);
constexpr std::size_t kMostClasses = 2;

/// The only table that is read for each element, by distance; null: none, or several.
Expr table_of(Writer& writer, Expr value) {
    Expr only = nullptr;
    bool several = false;
    contains(value, [&](Expr x) {
        if (x->kind != Kind::Load || x->number < kWorkspace || writer.level(x) != Level::Tile) return false;
        several = only != nullptr;
        only = x;
        return several;
    });
    return several || (only && only->type != Type::Real) ? nullptr : only;
}

/// What that table holds, over i and j; null: another kind of table.
Expr held_by(Launch& launch, Expr table) {
    for (const auto& [body, load] : launch.tables) {
        if (load->number != table->number || (body->free & index_bit(place::distance)) == 0) continue;
        std::vector<Expr> map(kMaxIndex, nullptr);
        map[place::distance] = launch.pool.sub(launch.pool.index(axis::j), launch.pool.index(axis::i));
        return launch.pool.substitute(body, map);
    }
    return nullptr;
}

/// A tile is as far from the diagonal as that where ends + rest <= 0: of its ends, and of its work item.
struct Far {
    Expr ends, rest;
};

bool is_bound(Expr e) { // e <= 0
    return e->kind == Kind::Cmp && e->op == Op::Le && e->args.size() == 1;
}

/// Bounds of the same ends, all of which hold, are one.
std::optional<Far> far_of(ExprPool& pool, Expr condition) {
    std::optional<Far> out;
    for (const Expr e : condition->kind == Kind::And ? condition->args : std::vector{condition}) {
        const bool of_data = contains(e, [](Expr x) { return x->kind == Kind::Load && x->number >= mask::kTable; });
        if (!is_bound(e) || of_data) return std::nullopt;
        const IntSum s = as_sum(e->args[0]);
        std::vector<std::pair<std::int64_t, Expr>> ends, rest;
        for (const auto& t : s.terms) ((t.second->free & kTile) != 0 ? ends : rest).push_back(t);
        const Far one{pool.isum(0, ends), pool.isum(s.constant, rest)};
        if (out && out->ends != one.ends) return std::nullopt;
        out = Far{one.ends, out ? pool.extremum(Kind::Max, {out->rest, one.rest}) : one.rest};
    }
    return out;
}

/// No tile that keep lets be visited is as far, unless operands are negative: then it is not asked about.
bool never_visited(ExprPool& pool, const Far& far, Expr keep) {
    const auto excludes = [&](Expr atom) {
        if (!is_bound(atom)) return false;
        const Expr some = mask::analyse(pool, atom).any;
        if (!is_bound(some)) return false;
        const Expr gap = pool.isum(0, {{1, far.ends}, {1, far.rest}, {1, some->args[0]}}); // <= 0 where both hold
        const IntSum s = as_sum(gap);
        return (gap->free & kTile) == 0 && s.constant >= 0 &&
               std::all_of(s.terms.begin(), s.terms.end(), [](const auto& t) { return t.first > 0; });
    };
    if (keep->kind == Kind::And) return std::any_of(keep->args.begin(), keep->args.end(), excludes);
    return excludes(keep);
}

struct Class {
    std::vector<Far> any;
    Expr value;
};

std::vector<Class> classes_of(Work& w, Expr bias) {
    ExprPool& pool = w.launch.pool;
    std::vector<mask::Table> tables;
    std::vector<Class> out;
    for (const auto& c : mask::constant_bias(pool, bias, tables)) {
        if (contains(c.value, [](Expr x) { return x->kind == Kind::Reduce || x->kind == Kind::Table; })) continue;
        Class made{{}, c.value};
        for (const Expr e : c.condition->kind == Kind::Or ? c.condition->args : std::vector{c.condition})
            if (const auto far = far_of(pool, e); far && !never_visited(pool, *far, w.part.keep))
                made.any.push_back(*far);
        if (!made.any.empty() && out.size() < kMostClasses) out.push_back(std::move(made));
    }
    return out;
}

/// By a limit of the work item.
std::string written(ExprPool& pool, Local& local, const Far& far) {
    const IntSum s = as_sum(far.ends);
    const bool later = std::any_of(s.terms.begin(), s.terms.end(), [&](const auto& t) {
        return t.first < 0 && t.second == pool.index(mask::tile::j0);
    });
    const Expr ends = pool.isum(0, {{later ? -1 : 1, far.ends}}), limit = pool.isum(0, {{later ? 1 : -1, far.rest}});
    const NodePtr bound = is_const(limit) ? local.writer.make(limit) : local.writer.hoist(limit, Level::Scalar);
    return text(compare(local.writer.make(ends), later ? ">=" : "<=", bound));
}

std::string written(ExprPool& pool, Local& local, const Class& c) {
    std::string out;
    for (const Far& far : c.any) {
        const std::string one = written(pool, local, far);
        out += (out.empty() ? "" : " or ") + (c.any.size() > 1 ? "(" + one + ")" : one);
    }
    return out;
}

} // namespace

std::vector<cuir::Statement> flat_tiles(Work& w, Local& local, Expr value) {
    ExprPool& pool = w.launch.pool;
    Writer& writer = local.writer;
    const Expr table = w.strided ? nullptr : table_of(writer, value), bias = table ? held_by(w.launch, table) : nullptr;
    if (!bias) return {};
    const auto classes = classes_of(w, bias);
    if (classes.empty()) return {};
    const std::string &i0 = w.at.attend_params[2], &n = w.at.attend_params[3];
    writer.index[mask::tile::i0] = name(i0);
    writer.index[mask::tile::i1] = parse(i0 + " + " + w.at.row_count);
    writer.index[mask::tile::j0] = parse(n + " * BN");
    writer.index[mask::tile::j1] = parse("(" + n + " + 1) * BN");
    std::vector<std::string> flat;
    for (const auto& c : classes) {
        const std::string condition = written(pool, local, c);
        flat.push_back(w.launch.fresh("flat"));
        local.made.push_back(flat.back() + " = " + condition);
    }
    Expr one = classes[0].value;
    if (classes.size() > 1) {
        const NodePtr first = writer.write(classes[0].value), second = writer.write(classes[1].value);
        const std::string same = w.launch.fresh("value");
        local.made.push_back(same + " = " + text(call("where", {name(flat[0]), first, second})));
        one = pool.load(kFlat, Type::Real, {});
        local.of_tile(one, same);
    }
    const auto in_block = [&](const std::function<std::vector<cuir::Statement>()>& write) {
        std::vector<cuir::Statement> out, own;
        for (const auto& made : local.in_block([&] { own = write(); })) out.push_back(line(made));
        out.insert(out.end(), std::make_move_iterator(own.begin()), std::make_move_iterator(own.end()));
        return out;
    };
    std::string some = flat[0];
    if (classes.size() > 1) some = "(" + some + " or " + flat[1] + ")";
    std::vector<cuir::Statement> out{line("if not " + some + ":"), {}};
    out[0].body =
        in_block([&] { return std::vector{line(w.at.x + " = " + text(writer.write(by_exp2(pool, value))))}; });
    out[1].kind = cuir::Statement::Kind::Else;
    const Expr far = pool.rewrite(value, [&](Expr x) { return x == table ? one : x; });
    out[1].body = in_block([&] { return score_statements(w, local, far); });
    w.applied("bias: one value far from the diagonal");
    return out;
}

} // namespace cubridge::ir::transfer
