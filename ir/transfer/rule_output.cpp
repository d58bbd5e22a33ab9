// Rows without keys, what is made of the weighted sum, where it is stored, the LSE. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using syntax::Kind;

void empty_rows(Work& w) {
    if (w.part.weights.kind != Weights::Kind::Softmax || !w.part.weights.extra.empty()) return;
    if (w.launch.target.request.empty_rows == Request::EmptyRows::Zero) return;
    switch (w.part.empty) {
    case Part::Empty::Never:
    case Part::Empty::Zero: return;
    case Part::Empty::NaN: {
        const Spot inv = w.in(w.role(), w.at.inv);
        // of no keys at all a weighted sum is 0
        w.replace(inv, w.at.inv + " = where(" + text(w.every_key) + " > 0, 1.0 / " + w.at.total + ", 0.0)");
        inv->comment = "a row without a key gives NaN";
        return w.applied("rows without keys give NaN");
    }
    case Part::Empty::Uniform: refuse("a row without keys gives the mean of all values", "ask for empty rows of zeros");
    case Part::Empty::Other: refuse("what a row without keys gives is no rule's", "ask for empty rows of zeros");
    }
}

/// Statements of the epilogue: elementwise over the accumulator, row sums of it.
void expression(Work& w) {
    ExprPool& pool = w.launch.pool;
    const Expr d = pool.index(axis::d);
    const Expr plain =
        pool.load(kOutput, Type::Real, {pool.index(axis::b), pool.index(axis::h), pool.index(axis::i), d});
    if (w.launch.v.out == plain) return;
    const Places& at = w.at;
    Local local(w, at.late ? Local::Where::Late : Local::Where::Role);
    auto& writer = local.writer;
    const Expr e = by_exp2(pool, w.launch.v.out);
    const auto needs = [&](int axis) { return contains(e, [&](Expr x) { return x == pool.index(axis); }); };
    // positions that are read beside those of the accumulator itself
    const bool other = contains(e, [&](Expr x) {
        return x->kind != ir::Kind::Load || x->number < kOutput || x->number >= kLse
                   ? std::any_of(x->args.begin(), x->args.end(),
                                 [&](Expr a) {
                                     return a->kind == ir::Kind::Index &&
                                            (a->number == axis::i || a->number == axis::d);
                                 })
                   : false;
    });
    if (other && needs(axis::i)) writer.index[axis::i] = name(at.late ? local.late_rows() : w.item_rows());
    if (other && needs(axis::d)) {
        const std::string c = w.launch.fresh("d");
        local.made.push_back(c + " = cols(0, Dv)");
        local.columns.insert(c);
        writer.index[axis::d] = name(c);
    }
    const auto own = writer.leaf;
    writer.leaf = [&, own](Expr x) -> NodePtr {
        if (x->kind != ir::Kind::Load || x->number != kOutput) return own(x);
        if (x->args[3] != d) refuse("a column of the output depends on single other columns");
        return name(at.acc);
    };
    writer.reduce = [&](Expr x) -> NodePtr {
        const bool over_columns =
            x->reduce == ReduceOp::Sum && x->args[1]->kind == ir::Kind::Dim &&
            (x->args[1]->number == dims::Dv || x->args[1]->number == dims::D) &&
            w.launch.head_dim_v == (x->args[1]->number == dims::Dv ? w.launch.head_dim_v : w.launch.head_dim);
        if (!over_columns) refuse("a reduction of the output other than the sum of a row");
        const std::string share = w.launch.fresh("share"), sum = w.launch.fresh("sum");
        const NodePtr body = writer.write(pool.open(x, d), Level::Tile);
        local.made.push_back(share + " = (" + text(body) + ").sum(-1)");
        local.made.push_back(sum + " = complete(" + share + ")");
        return name(sum);
    };
    std::string value = text(writer.write(e));
    std::vector<std::string> there = local.made;
    if (at.late) there = local.before_next(value);
    there.push_back(at.acc + "[:] = " + value);
    w.insert_before(w.role(), writes_output(w), there);
    w.applied("output: " + std::string(other ? "gated" : "scaled"));
}

void lse(Work& w) {
    Launch& l = w.launch;
    ExprPool& pool = w.launch.pool;
    auto& role = w.role();
    const bool own = l.v.parts.size() == 1;
    const bool needed = own ? l.stores_lse : !w.lse.empty();
    if (!needed) {
        const Spot value = w.in(role, w.at.lse);
        if (value) w.erase(value);
        if (const Spot store = last(w.role(), stores_to("Lse"))) w.erase(store);
        erase_param(w, "Lse");
        if (value) w.applied("no LSE");
        return;
    }
    if (w.part.weights.kind != Weights::Kind::Softmax || (own && !l.target.returns_lse && !l.v.row_lse))
        refuse("an LSE is asked for, and the weights are no softmax", "ask for no LSE");
    const Expr plain = pool.load(kLse, Type::Real, {pool.index(axis::b), pool.index(axis::h), pool.index(axis::i)});
    if (own && l.target.returns_lse && l.v.lse && l.v.lse != plain)
        refuse("the LSE that the text returns is not that of its weights");
    const bool log2 = own && l.target.request.lse == Request::Lse::Log2;
    NodePtr shift;
    Local local(w, Local::Where::Role);
    if (w.row_shift) {
        std::string rows;
        if (w.at.late) { // positions are named where they are used, not where the item began
            rows = l.fresh("i");
            local.made.push_back(rows + " = rows(" + w.at.first_row + ", " + w.at.row_count + ")");
        } else {
            rows = w.item_rows();
        }
        local.writer.index[axis::i] = name(rows);
        shift = local.writer.write(w.row_shift);
        w.applied("LSE: what the scores left out");
    }
    const Spot value = w.in(w.role(), w.at.lse);
    const auto edit = [&](auto&& self, const NodePtr& x) -> NodePtr {
        if (x->kind == Kind::Binary && x->text == "*" && base(x->items[1]) == "LN2") {
            const NodePtr sum = shift ? binary("+", x->items[0], shift) : x->items[0];
            return log2 ? sum : binary("*", sum, x->items[1]);
        }
        auto out = std::make_shared<syntax::Node>(*x);
        for (auto& i : out->items)
            if (i) i = self(self, i);
        return out;
    };
    if (log2 || shift) {
        value->node = edit(edit, value->node);
        std::size_t k = value.at;
        for (const auto& s : local.made) w.insert({value.block, k++}, s);
    }
    if (log2) w.applied("LSE of base 2");
    if (w.lse != "Lse") {
        const Spot store = last(w.role(), stores_to("Lse"));
        store->node = replace(store->node, "Lse", name(w.lse));
        erase_param(w, "Lse");
    }
}

} // namespace

void output(Work& w) {
    empty_rows(w);
    lse(w);
    if (w.launch.v.parts.size() == 1) expression(w);
    destination(w);
}

} // namespace cubridge::ir::transfer
