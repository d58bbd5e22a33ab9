// Unions of a dense mask with every T-th key (window | sinks | j % 8 == 0): the keys that the dense part leaves out are
// visited in tiles of their own, of keys r, r + T, ... Their numbers follow those of the dense tiles.
// SPDX-License-Identifier: Apache-2.0
#include "ir/mask/mask.h"
#include "ir/transfer/congruence.h"
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;

/// With fewer keys between two of them, dense tiles are about as few.
constexpr std::int64_t kLeastStep = 4;
constexpr std::size_t kMostRanges = 4; // of both: all are looked through for each tile

std::vector<Expr> atoms(Expr e) {
    return e->kind == Kind::And ? e->args : std::vector<Expr>{e};
}

/// Conjunctions whose union it is, as far as one step of opening goes.
std::vector<Expr> alternatives(ExprPool& pool, Expr keep) {
    if (keep->kind == Kind::Or) return keep->args;
    const auto all = atoms(keep);
    const auto open = std::find_if(all.begin(), all.end(), [](Expr a) { return a->kind == Kind::Or; });
    if (open == all.end()) return {keep};
    std::vector<Expr> rest, out;
    for (const Expr a : all)
        if (a != *open) rest.push_back(a);
    for (const Expr a : (*open)->args) {
        auto one = rest;
        one.push_back(a);
        out.push_back(pool.logical_and(std::move(one)));
    }
    return out;
}

bool holds(const std::vector<Expr>& all, Expr e) {
    return std::find(all.begin(), all.end(), e) != all.end();
}

std::vector<Expr> without(const std::vector<Expr>& from, const std::vector<Expr>& what) {
    std::vector<Expr> out;
    for (const Expr e : from)
        if (!holds(what, e)) out.push_back(e);
    return out;
}

/// X of `X * BN`, where a slice or the columns of a tile begin.
NodePtr tile_of(const NodePtr& first) {
    const bool product = first && first->kind == syntax::Kind::Binary && first->text == "*";
    if (!product || base(first->items[1]) != "BN") refuse("a key tile does not begin at its number times BN");
    return first->items[0];
}

std::string where(const std::string& dense, const std::string& otherwise, const NodePtr& tile, const Work& w) {
    return "where(" + text(compare(tile, "<", w.strided->dense_tiles)) + ", " + dense + ", " + otherwise + ")";
}

/// First key of the tile.
std::string first_of(const NodePtr& tile, const Work& w) {
    const auto& s = *w.strided;
    NodePtr sparse = binary("*", binary("*", binary("-", tile, s.dense_tiles), name("BN")), s.step);
    if (s.first_key) sparse = binary("+", sparse, s.first_key);
    return where(text(binary("*", tile, name("BN"))), text(sparse), tile, w);
}

void load_by_kind(Work& w, const Spot& spot) {
    const NodePtr call = call_of(*spot), slice = call->items[1], range = slice->items[1]->items.at(2);
    if (range->kind != syntax::Kind::Slice || range->items[2]) refuse("keys are loaded by no plain range");
    const NodePtr tile = tile_of(range->items[0]);
    const std::string from = w.launch.fresh("begin"), by = w.launch.fresh("by");
    NodePtr end = binary("+", name(from), binary("*", name("BN"), name(by)));
    const NodePtr& last = range->items[1]; // a length may end it
    if (last->kind == syntax::Kind::Call && base(last->items[0]) == "minimum")
        end = transfer::call("minimum", {end, last->items[2]});
    auto stepped = std::make_shared<syntax::Node>(*range);
    stepped->items = {name(from), end, name(by)};
    auto at = std::make_shared<syntax::Node>(*slice->items[1]);
    at->items[2] = stepped;
    auto whole = std::make_shared<syntax::Node>(*slice);
    whole->items[1] = at;
    auto copy = std::make_shared<syntax::Node>(*call);
    copy->items[1] = whole;
    auto statement = std::make_shared<syntax::Node>(*spot->node);
    statement->items[0] = copy;
    spot->node = statement;
    w.insert(spot, by + " = " + where("1", text(w.strided->step), tile, w));
    w.insert(spot, from + " = " + first_of(tile, w));
}

/// j of attend's columns.
void columns_by_kind(Work& w) {
    auto& attend = w.attend();
    const Spot spot = w.in(attend, w.at.cols);
    const auto results = results_of(*spot);
    auto node = std::make_shared<syntax::Node>(*spot->node);
    const auto edit = [&](NodePtr& part, std::size_t k, const NodePtr& by) {
        if (part->kind != syntax::Kind::Tuple) {
            part = by;
            return;
        }
        auto tuple = std::make_shared<syntax::Node>(*part);
        tuple->items[k] = by;
        part = tuple;
    };
    const auto k = static_cast<std::size_t>(std::find(results.begin(), results.end(), w.at.cols) - results.begin());
    const NodePtr value = node->items.back();
    auto cols = std::make_shared<syntax::Node>(*(value->kind == syntax::Kind::Tuple ? value->items.at(k) : value));
    const NodePtr tile = tile_of(cols->items.at(1));
    cols->items[1] = small(0);
    const std::string column = w.launch.fresh("column");
    edit(node->items[0], k, name(column));
    edit(node->items.back(), k, cols);
    spot->node = node;
    w.insert_after(spot, w.at.cols + " = " + column + " * " + where("1", text(w.strided->step), tile, w) + " + " +
                             first_of(tile, w));
}

/// Positions of keys in what is made of a score.
bool reads_keys(Expr e) {
    if (!e || (e->free & index_bit(axis::j)) == 0) return false;
    if (e->kind == Kind::Index) return true;
    return !(e->kind == Kind::Load && e->number == kScore) && std::any_of(e->args.begin(), e->args.end(), reads_keys);
}

} // namespace

void strided_keys(Work& w) {
    ExprPool& pool = w.launch.pool;
    const auto all = alternatives(pool, w.part.keep);
    if (all.size() < 2 || w.key_step) return;
    std::vector<Expr> common = atoms(all[0]);
    for (const Expr a : all) {
        const auto here = atoms(a);
        common.erase(std::remove_if(common.begin(), common.end(), [&](Expr e) { return !holds(here, e); }),
                     common.end());
    }
    std::optional<Congruence> every;
    std::vector<Expr> dense, sparse;
    for (const Expr a : all) {
        const auto own = without(atoms(a), common);
        const Congruence* found = nullptr;
        const auto implied = congruences(pool, pool.logical_and(own));
        for (const auto& c : implied)
            if (c.slope == 0 && c.step >= kLeastStep && !c.says.empty() &&
                (every ? c.step == every->step && c.shift == every->shift : !found || c.step > found->step))
                found = &c;
        (found ? sparse : dense).push_back(pool.logical_and(found ? without(own, found->says) : own));
        if (found && !every) every = *found;
    }
    if (!every || dense.empty()) return;
    const Expr both = pool.logical_and(common), near = pool.logical_or(dense),
               far = pool.logical_and(pool.logical_or(sparse), pool.logical_not(near));
    std::vector<Expr> in_class(kMaxIndex, nullptr);
    in_class[axis::j] = pool.isum(0, {{every->step, pool.index(axis::j)}, {1, every->shift}});
    Work::Strided s;
    s.dense = pool.logical_and(both, near);
    s.sparse = divided(pool, pool.substitute(pool.logical_and(both, far), in_class), every->step);
    s.keys = pool.apply(Op::FloorDiv, pool.isum(every->step - 1, {{1, w.part.keys}, {-1, every->shift}}),
                        pool.integer(every->step));
    const auto tiles = mask::analyse(pool, s.dense, w.part.keys).ranges,
               more = mask::analyse(pool, s.sparse, s.keys).ranges;
    if (tiles.empty() || more.empty() || tiles.size() + more.size() > kMostRanges)
        return w.applied("no strided tiles: no closed form");
    Local local(w, Local::Where::Load);
    s.step = w.uses.integer(every->step);
    if (!is_int(every->shift, 0)) s.first_key = local.writer.write(every->shift);
    s.dense_tiles = call("cdiv", {w.keys, name("BN")});
    s.count = call("cdiv", {s.first_key ? binary("-", w.keys, s.first_key) : w.keys, s.step});
    w.strided = std::move(s);
    const auto loads_keys = [&](const Statement& t) {
        const auto c = call_of(t);
        return c && c->items.size() == 3 && base(c->items[0]) == "copy_async" &&
               (base(c->items[2]) == w.at.k_cells || base(c->items[2]) == w.at.v_cells);
    };
    Work::each(w.kernel.body, loads_keys, [&](const Spot& spot) { load_by_kind(w, spot); });
    const Part& p = w.part;
    if (reads_keys(p.score) || reads_keys(p.weights.value) || reads_keys(p.weights.rest) || reads_keys(p.gain))
        columns_by_kind(w);
    w.applied("strided tiles beside dense ones");
}

} // namespace cubridge::ir::transfer
