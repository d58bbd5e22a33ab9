// Which tensors, heads and rows q, k and v are loaded from. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"

namespace cubridge::ir::transfer {
namespace {

using cuir::Statement;

struct Source {
    std::string tensor; ///< parameter or workspace
    Expr head;          ///< over h
    bool batch = true;  ///< indexed by b; false: one for all requests
    std::int64_t step = 1;
    Expr first = nullptr; ///< with a step: row k is row first + k * step of the tensor
};

/// Edits slices `tensor[b, head, ...]` in all statements of a kernel.
NodePtr edited(const NodePtr& x, const std::string& tensor, const std::function<NodePtr(const NodePtr&)>& edit) {
    if (!x) return x;
    if (x->kind == syntax::Kind::Subscript && base(x) == tensor && x->items[1]->kind == syntax::Kind::Tuple)
        return edit(x);
    auto out = std::make_shared<syntax::Node>(*x);
    for (auto& i : out->items) i = edited(i, tensor, edit);
    for (auto& k : out->keywords) k.value = edited(k.value, tensor, edit);
    return out;
}

/// index = step * axis + first, with rows from 0 up.
bool steps_by(ExprPool& pool, Expr index, int axis, Source& s) {
    const IntSum sum = as_sum(index);
    std::vector<std::pair<std::int64_t, Expr>> rest;
    s.step = 0;
    for (const auto& [c, t] : sum.terms) {
        if (t == pool.index(axis))
            s.step = c;
        else
            rest.emplace_back(c, t);
    }
    s.first = pool.isum(sum.constant, rest);
    const bool natural = is_const(s.first) ? s.first->integer >= 0 : s.first->kind == Kind::Mod;
    return (s.step == 1 && is_int(s.first, 0)) ||
           (s.step > 1 && natural && (s.first->free & ~(index_bit(axis::h) | index_bit(axis::b))) == 0);
}

/// The tensor that an expression of q, k or v is a plain Load of.
std::optional<Source> plain(Work& w, Expr e, int row_axis, int column_axis) {
    ExprPool& pool = w.launch.pool;
    if (e->kind != Kind::Load || e->args.size() != 4) return std::nullopt;
    const bool columns = e->args[3] == pool.index(column_axis), b = e->args[0] == pool.index(axis::b);
    if (!columns || !b || (e->args[1]->free & ~(index_bit(axis::h) | index_bit(axis::b))) != 0) return std::nullopt;
    Source s;
    if (!steps_by(pool, e->args[2], row_axis, s)) return std::nullopt;
    s.head = e->args[1];
    if (e->number <= 2) {
        s.tensor = std::string(1, "QKV"[e->number]);
    } else {
        const int x = canonical(w.launch.v, e->number);
        if (x < 0) return std::nullopt;
        const auto& type = w.launch.target.operands.at(static_cast<std::size_t>(x));
        if (type.dtype != w.launch.target.request.kv_dtype) return std::nullopt; // to be converted
        s.tensor = "x" + std::to_string(x);
    }
    return s;
}

/// Each element is 0 or one that a tensor of the element type has: nothing is rounded again.
bool is_exact(const Launch& l, Expr e) {
    if (e->kind == Kind::Select) return is_exact(l, e->args[1]) && is_exact(l, e->args[2]);
    if (e->kind == Kind::Const) return e->real == 0;
    if (e->kind != Kind::Load) return false;
    const int x = canonical(l.v, e->number);
    if (x < 0) return e->number <= 2;
    return l.target.operands.at(static_cast<std::size_t>(x)).dtype == l.target.request.kv_dtype;
}

/// Rows and columns of q, k or v that are chosen (padding, permutations) become a tensor of the workspace. What is
/// computed (norm, rotation, another element type) would be rounded to the element type a second time, at several times
/// the error of a text that keeps it in float32.
Source transformed(Work& w, Expr e, const char* what, int row_axis, int column_axis, Expr rows, const char* columns) {
    Launch& l = w.launch;
    ExprPool& pool = l.pool;
    if (!is_exact(l, e))
        refuse(std::string(what) + " is computed from its tensors, and the expert's loads would round it a second time",
               "give operands that become k or v in their element type");
    if ((e->free & ~(index_bit(axis::b) | index_bit(axis::h) | index_bit(row_axis) | index_bit(column_axis))) != 0)
        refuse(std::string(what) + " depends on more than its own position");
    // one for each head of the tensor that it is made of, not for each query head
    const Expr kv =
        pool.apply(Op::FloorDiv, pool.index(axis::h), pool.apply(Op::FloorDiv, pool.dim(dims::Hq), pool.dim(dims::Hk)));
    Expr by_kv = pool.rewrite(e, [&](Expr x) { return x == kv ? pool.index(place::entry) : x; });
    const bool grouped = (by_kv->free & index_bit(axis::h)) == 0;
    Map map(l, std::string("make_") + what);
    const NodePtr heads = grouped ? name("Hk") : map.writer.write(l.v.heads);
    const NodePtr row_count = map.writer.write(rows);
    const int n = l.allocate(what, {name("B"), heads, row_count, name(columns)}, l.target.request.q_dtype);
    map.writer.index = {{axis::b, name("b")},
                        {axis::h, name("h")},
                        {place::entry, name("h")},
                        {row_axis, name("i")},
                        {column_axis, name("c")}};
    const std::string value = text(map.write(grouped ? by_kv : e));
    const std::string tensor = l.workspace[static_cast<std::size_t>(n)];
    map.add(tensor + "[b, h, i, c] = " + value);
    std::vector<Statement> params;
    for (const auto& t : map.uses.tensors) {
        if (const Statement* p = w.kernel.param(t)) params.push_back(*p);
    }
    set_constant(map.kernel(), columns, w.kernel.constant(columns));
    set_constant(map.kernel(), "elem", w.kernel.constant("elem"));
    if (std::string(columns) == "Dv" &&
        contains(e, [](Expr x) { return x->kind == Kind::Dim && x->number == dims::D; }))
        set_constant(map.kernel(), "D", w.kernel.constant("D"));
    map.finish({"b", "h", "i", "c"}, {name("B"), heads, row_count, name(columns)}, params);
    w.applied(std::string(what) + " made by a map kernel");
    return {tensor, grouped ? kv : pool.index(axis::h), true};
}

/// The tensor's heads are not known to be those of q or of k.
void other_heads(Work& w, const std::string& tensor) {
    for (auto& s : w.kernel.head) {
        if (s.kind != Statement::Kind::Param || s.name != tensor) continue;
        auto type = std::make_shared<syntax::Node>(*s.node);
        auto axes = std::make_shared<syntax::Node>(*type->items[1]);
        axes->items.at(1) = name("_");
        type->items[1] = axes;
        s.node = type;
    }
}

void load_from(Work& w, const std::string& tensor, const Source& s, Expr own_head) {
    const bool own = s.tensor == tensor && s.head == own_head;
    if (own && s.step == 1) return;
    Local local(w, Local::Where::Load);
    const NodePtr head = local.writer.write(s.head);
    const NodePtr step = s.step > 1 ? w.uses.integer(s.step) : nullptr,
                  first = step && !is_int(s.first, 0) ? local.writer.write(s.first) : nullptr;
    edit_slices(w.kernel.body, tensor, [&](const NodePtr& x) {
        auto out = std::make_shared<syntax::Node>(*stepped(x, head, step, first));
        out->items[0] = name(s.tensor);
        return NodePtr(out);
    });
    if (s.tensor == tensor && !own) other_heads(w, tensor);
    if (step && w.row_extent == w.launch.pool.dim(dims::Sq)) w.applied("rows by steps");
    if (!own) w.applied("heads and tensors of q, k, v");
}

/// x0 as K or V takes the parameter's place and type.
void become(Work& w, const std::string& tensor, const std::string& by) {
    auto& head = w.kernel.head;
    for (std::size_t k = 0; k < head.size(); ++k) {
        if (head[k].kind != Statement::Kind::Param || head[k].name != tensor) continue;
        const bool there = w.kernel.param(by) != nullptr || by[0] != 'x';
        if (there) {
            head.erase(head.begin() + static_cast<std::ptrdiff_t>(k));
        } else {
            head[k].name = by;
            head[k].node = item("elem", Nodes(4, name("_")));
        }
        return;
    }
}

} // namespace

void edit_slices(std::vector<Statement>& block, const std::string& tensor,
                 const std::function<NodePtr(const NodePtr&)>& edit) {
    for (auto& s : block) {
        if (s.kind == Statement::Kind::Simple && reads(s.node, tensor)) s.node = edited(s.node, tensor, edit);
        edit_slices(s.body, tensor, edit);
    }
}

NodePtr stepped(const NodePtr& slice, const NodePtr& head, const NodePtr& step, const NodePtr& first) {
    auto out = std::make_shared<syntax::Node>(*slice);
    auto at = std::make_shared<syntax::Node>(*slice->items[1]);
    at->items.at(1) = head;
    out->items[1] = at;
    if (!step) return out;
    const NodePtr range = at->items.at(2);
    if (range->kind != syntax::Kind::Slice || !range->items[0] || !range->items[1] || range->items[2])
        refuse("rows of a residue class are moved by a range of them");
    auto each = std::make_shared<syntax::Node>(*range);
    for (const std::size_t end : {std::size_t{0}, std::size_t{1}}) {
        each->items[end] = binary("*", range->items[end], step);
        if (first) each->items[end] = binary("+", each->items[end], first);
    }
    each->items[2] = step;
    at->items[2] = each;
    return out;
}

Expr length_of(Work& w) {
    // keep implies j < e, with e of the request and the head: the least of a conjunction's bounds
    ExprPool& pool = w.launch.pool;
    const Expr keep = w.part.keep, j = pool.index(axis::j);
    for (const Expr c : keep->kind == Kind::And ? keep->args : std::vector<Expr>{keep}) {
        if (c->kind != Kind::Cmp || c->op != Op::Le || c->args.size() != 1) continue;
        const IntSum s = as_sum(c->args[0]);
        for (const auto& [k, t] : s.terms) {
            if (t != j || k < 1) continue;
            // k j + rest <= 0
            const Expr rest = pool.isum(0, {{1, c->args[0]}, {-k, j}});
            const Expr end = pool.isum(1, {{1, pool.apply(Op::FloorDiv, pool.isum(0, {{-1, rest}}), pool.integer(k))}});
            if ((end->free & ~(index_bit(axis::b) | index_bit(axis::h))) == 0 && !is_const(end)) return end;
        }
    }
    return nullptr;
}

void inputs(Work& w) {
    ExprPool& pool = w.launch.pool;
    Part& p = w.part;
    const Expr h = w.own_head;
    const Expr kv = pool.apply(Op::FloorDiv, h, pool.apply(Op::FloorDiv, pool.dim(dims::Hq), pool.dim(dims::Hk)));
    const bool plain_heads = h != pool.index(axis::h) || w.launch.v.heads == pool.dim(dims::Hq);
    const auto source = [&](Expr e, const char* what, int row, int column, Expr rows, const char* columns) {
        const auto s = plain(w, e, row, column);
        const bool own = s && (s->tensor == "Q" || s->tensor == "K" || s->tensor == "V");
        if (w.at.mapped && !own)
            refuse(std::string(what) + " is no slice of q, k or v, which are the tensors that maps describe");
        return s ? *s : transformed(w, e, what, row, column, rows, columns);
    };
    if (p.keys != pool.dim(dims::Sk)) { // before anything else is written: the expert's own Sk
        if (w.every_key == w.keys) {    // not those of a class
            Local local(w, Local::Where::Load);
            w.every_key = w.keys = local.writer.write(p.keys);
            w.applied("number of keys");
        }
        const auto rename = [&](auto&& self, std::vector<Statement>& block, const std::string& head) -> void {
            for (auto& s : block) {
                if (s.kind == Statement::Kind::Simple && reads(s.node, "Sk"))
                    s.node = replace(s.node, "Sk", w.keys_for(head));
                self(self, s.body,
                     s.kind != Statement::Kind::Def ? head
                     : s.name == w.at.attend        ? w.at.attend_params[1]
                                                    : w.at.tile_params[1]);
            }
        };
        rename(rename, w.kernel.body, w.at.load_h);
    }
    const Source q = source(p.q, "q", axis::i, axis::c, pool.dim(dims::Sq), "D"),
                 k = source(p.k, "k", axis::j, axis::c, p.keys, "D"),
                 v = source(p.v, "v", axis::j, axis::d, p.keys, "Dv");
    load_from(w, "Q", q, h);
    load_from(w, "K", k, kv);
    load_from(w, "V", v, kv);
    for (const auto& [tensor, s] : {std::pair<std::string, const Source&>{"Q", q}, {"K", k}, {"V", v}})
        if (s.tensor != tensor) become(w, tensor, s.tensor);
    if (!plain_heads) { // bind(B, Hq, ...) and the outputs have other heads
        Local local(w, Local::Where::Load);
        const NodePtr heads = local.writer.write(w.launch.v.heads);
        const auto rebind = [&](auto&& self, std::vector<Statement>& block) -> void {
            for (auto& s : block) {
                if (s.kind == Statement::Kind::For &&
                    (line_of(s).find("bind(") != std::string::npos || line_of(s).find("draw(") != std::string::npos)) {
                    auto node = std::make_shared<syntax::Node>(*s.node);
                    node->items[1] = replace(node->items[1], "Hq", heads);
                    s.node = node;
                }
                self(self, s.body);
            }
        };
        rebind(rebind, w.kernel.body);
        for (auto& s : w.kernel.head)
            if (s.kind == Statement::Kind::Param && (s.name == "Out" || s.name == "Lse"))
                s.node = replace(s.node, "Hq", heads);
        w.applied("heads of the output");
    }
    if (v.tensor == "V" && !plain_heads) other_heads(w, "V");

    const Expr end = length_of(w);
    if (!end || p.keep->kind == Kind::Const) return;
    // rows beyond it may be anything, NaN too: 0 * NaN would reach the output
    Local local(w, Local::Where::Load);
    for (const Source* s : {&k, &v}) {
        const Expr row = s->step == 1 ? end : pool.isum(0, {{s->step, end}, {1, s->first}});
        const NodePtr bound = local.writer.write(row);
        edit_slices(w.kernel.body, s->tensor, [&](const NodePtr& x) {
            auto out = std::make_shared<syntax::Node>(*x);
            auto at = std::make_shared<syntax::Node>(*x->items[1]);
            auto slice = std::make_shared<syntax::Node>(*at->items.at(2));
            if (slice->kind != syntax::Kind::Slice) return NodePtr(x);
            if (reads(slice->items[1], "minimum")) return NodePtr(x); // K and V are one tensor
            slice->items[1] = call("minimum", {slice->items[1], bound});
            at->items[2] = slice;
            out->items[1] = at;
            return NodePtr(out);
        });
    }
    w.applied("rows of k and v beyond the length are not loaded");
}

} // namespace cubridge::ir::transfer
