// Masks that keep one residue class of keys: j % T follows from i % T. Rows T i' + c and the keys of their class are an
// attention of their own, and T classes of a head are T heads of another Variant. SPDX-License-Identifier: Apache-2.0
#include "ir/mask/mask.h"
#include "ir/transfer/congruence.h"
#include "ir/transfer/rules.h"
#include <algorithm>

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;

/// The Variant over class rows and class keys, and for classes of rows, over class heads: h is T times the head and c.
class Reindexed {
public:
    Reindexed(Launch& l, const Congruence& c) : pool_(l.pool), map_(kMaxIndex, nullptr) {
        const Expr h = pool_.index(axis::h), step = pool_.integer(c.step);
        std::vector<Expr> heads(kMaxIndex, nullptr);
        if (c.slope != 0) {
            of_row = pool_.apply(Op::Mod, h, step);
            map_[axis::h] = heads[axis::h] = pool_.apply(Op::FloorDiv, h, step);
            map_[axis::i] = pool_.isum(0, {{c.step, pool_.index(axis::i)}, {1, of_row}});
        }
        const Expr shift = pool_.substitute(c.shift, heads);
        of_key = pool_.apply(Op::Mod, pool_.isum(0, {{c.slope, h}, {1, shift}}), step);
        map_[axis::j] = pool_.isum(0, {{c.step, pool_.index(axis::j)}, {1, of_key}});
    }

    Expr of_row = nullptr, of_key = nullptr; ///< first row and first key of the class

    Expr operator()(Expr e) {
        if (!e) return e;
        return pool_.rewrite(pool_.substitute(e, map_), [&](Expr x) -> Expr {
            // values of the kernel itself are at its own rows and keys
            if (x->kind != Kind::Load || x->number < kScore || x->number >= kLog2e) return x;
            auto at = x->args;
            at[1] = pool_.index(axis::h);
            at[2] = pool_.index(axis::i);
            if (x->number < kOutput) at[3] = pool_.index(axis::j);
            return pool_.load(x->number, x->type, std::move(at));
        });
    }

private:
    ExprPool& pool_;
    std::vector<Expr> map_;
};

bool is_plain_tensor(ExprPool& pool, Expr e, int row) {
    return e->kind == Kind::Load && e->args.size() == 4 && e->args[2] == pool.index(row);
}

/// Outputs of the part at other heads or rows than the one that is stored.
bool mixes_outputs(ExprPool& pool, Expr e) {
    return e && contains(e, [&](Expr x) {
               return x->kind == Kind::Load && x->number >= kOutput && x->number < kLog2e &&
                      (x->args[1] != pool.index(axis::h) || x->args[2] != pool.index(axis::i));
           });
}

/// Why rules do not fit; null: they do.
const char* obstacle(Work& w, const Congruence& c) {
    ExprPool& pool = w.launch.pool;
    const Part& p = w.part;
    if (w.launch.v.parts.size() > 1) return "several attentions";
    if (!is_plain_tensor(pool, p.k, axis::j) || !is_plain_tensor(pool, p.v, axis::j)) return "k or v is made";
    if (c.slope == 0) return nullptr;
    if (!is_plain_tensor(pool, p.q, axis::i)) return "q is made";
    if (w.launch.v.heads != pool.dim(dims::Hq)) return "heads of the output";
    if (mixes_outputs(pool, w.launch.v.out) || mixes_outputs(pool, w.launch.v.lse)) return "heads are combined";
    return nullptr;
}

NodePtr class_size(Work& w, const NodePtr& all, Expr first, const NodePtr& step) {
    Local local(w, Local::Where::Load);
    return call("cdiv", {is_int(first, 0) ? all : binary("-", all, local.writer.write(first)), step});
}

NodePtr each_step(const NodePtr& x, const NodePtr& step) { // cdiv(Sq, BM) of all rows: of the rows of a class
    if (!x) return x;
    auto out = std::make_shared<syntax::Node>(*x);
    if (x->kind == syntax::Kind::Call && base(x->items[0]) == "cdiv" && x->items.size() == 3 &&
        reads(x->items[1], "Sq")) {
        out->items[2] = binary("*", x->items[2], step);
        return out;
    }
    for (auto& i : out->items) i = each_step(i, step);
    return out;
}

/// Items are blocks of rows of one class of a head.
void rows_of_classes(Work& w, const NodePtr& step) {
    const NodePtr heads = binary("*", name("Hq"), step);
    const auto visit = [&](auto&& self, std::vector<Statement>& block) -> void {
        for (auto& s : block) {
            const bool loop = s.kind == Statement::Kind::For;
            if (loop && (reads(s.node->items[1], "bind") || reads(s.node->items[1], "draw"))) {
                auto node = std::make_shared<syntax::Node>(*s.node);
                node->items[1] = each_step(replace(node->items[1], "Hq", heads), step);
                s.node = node;
            } else if (s.kind == Statement::Kind::Simple && reads(s.node, "Sq")) {
                s.node = replace(s.node, "Sq", w.rows);
            }
            self(self, s.body);
        }
    };
    visit(visit, w.kernel.body);
    for (const char* tensor : {"Out", "Lse"})
        edit_slices(w.kernel.body, tensor, [&](const NodePtr& x) { return of_class(w, x); });
}

} // namespace

NodePtr of_class(const Work& w, const NodePtr& slice) {
    if (!w.row_step) return slice;
    const NodePtr h = slice->items[1]->items.at(1);
    return stepped(slice, binary("//", h, w.row_step), w.row_step, binary("%", h, w.row_step));
}

void residue(Work& w) {
    Launch& l = w.launch;
    ExprPool& pool = l.pool;
    Part& p = w.part;
    std::optional<Congruence> best;
    for (auto& c : congruences(pool, p.keep))
        if (!best || c.step > best->step) best = std::move(c);
    if (!best) return;
    if (const char* why = obstacle(w, *best)) return w.applied(std::string("no residue class: ") + why);
    Reindexed in_class(l, *best);
    const auto says = best->says;
    p.keep = pool.rewrite(
        p.keep, [&](Expr x) { return std::find(says.begin(), says.end(), x) != says.end() ? pool.boolean(true) : x; });
    const Expr keys = p.keys, step = pool.integer(best->step);
    const auto size = [&](Expr all, Expr first) {
        return pool.apply(Op::FloorDiv, pool.isum(best->step - 1, {{1, all}, {-1, first}}), step);
    };
    for (Expr* e :
         {&p.q, &p.k, &p.v, &p.score, &p.keep, &p.weights.value, &p.weights.rest, &p.gain, &l.v.out, &l.v.lse})
        *e = in_class(*e);
    p.keep = divided(pool, p.keep, best->step);
    for (Expr& e : p.weights.extra) e = in_class(e);
    p.keys = size(keys, in_class.of_key);

    if (best->step > 2) l.constants.emplace_back(best->step, l.fresh("T"));
    w.uses.constants = l.constants;
    const NodePtr by = w.uses.integer(best->step);
    Local local(w, Local::Where::Load);
    w.every_key = local.writer.write(keys);
    w.keys = class_size(w, w.every_key, in_class.of_key, by);
    w.key_step = by;
    if (best->slope != 0) {
        w.own_head = pool.apply(Op::FloorDiv, w.own_head, step);
        l.v.heads = pool.isum(0, {{best->step, l.v.heads}});
        w.row_extent = size(pool.dim(dims::Sq), in_class.of_row);
        w.row_step = by;
        w.rows = class_size(w, name("Sq"), in_class.of_row, by);
        rows_of_classes(w, by);
    }
    w.applied(best->slope != 0 ? "one residue class" : "one residue class of keys");
}

} // namespace cubridge::ir::transfer
