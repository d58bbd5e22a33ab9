// Copying a Variant into a new pool. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/variant/carry.h"
#include <unordered_map>

namespace cubridge::ir {
namespace {

class Carrier {
public:
    Carrier(ExprPool& to, const ExprPool& from, bool tail) : to_(to), from_(from), tail_(tail) {}

    Expr operator()(Expr e) {
        if (e == nullptr) return nullptr;
        const Expr plain = copy(e);
        return tail_ ? shifted(plain) : plain;
    }

private:
    // Nodes are in normal form already; children come before parents, so that depth is no stack.
    Expr copy(Expr e) {
        if (const auto it = done_.find(e); it != done_.end()) return it->second;
        ExprNode node = *e;
        for (Expr& a : node.args) a = copy(a);
        node.free = 0;
        node.height = node.depth = 0;
        if (e->kind == Kind::Table) {
            const auto [it, fresh] = tables_.try_emplace(e->number, 0);
            if (fresh) it->second = to_.add_table(from_.table(e->number));
            node.number = it->second;
        }
        return done_[e] = to_.intern(std::move(node));
    }

    Expr shifted(Expr e) {
        const Expr Sq = to_.dim(dims::Sq), Sk = to_.dim(dims::Sk), i = to_.index(axis::i);
        const Expr row = to_.add(i, to_.sub(Sk, Sq));
        // Loads of q keep their own row: they are hidden behind another input while rows move.
        const Expr text = to_.rewrite(e, [&](Expr x) {
            if (x->kind == Kind::Dim && x->number == dims::Sq) return Sk;
            return x;
        });
        std::vector<Expr> map(axis::Count, nullptr);
        map[axis::i] = row;
        const Expr moved = to_.substitute(text, map);
        return to_.rewrite(moved, [&](Expr x) {
            if (x->kind != Kind::Load || x->number != 0) return x;
            auto args = x->args;
            args[2] = to_.sub(args[2], to_.sub(Sk, Sq));
            return to_.with_args(x, std::move(args));
        });
    }

    ExprPool& to_;
    const ExprPool& from_;
    const bool tail_;
    std::unordered_map<Expr, Expr> done_;
    std::unordered_map<int, int> tables_;
};

} // namespace

Variant carry(const Variant& v, bool tail) {
    Variant out;
    out.pool = std::make_shared<ExprPool>();
    Carrier to(*out.pool, *v.pool, tail);
    for (const Part& p : v.parts) {
        Part q = p;
        for (Expr* e :
             {&q.q, &q.k, &q.v, &q.inner, &q.keys, &q.score, &q.keep, &q.weights.value, &q.weights.rest, &q.gain})
            *e = to(*e);
        for (Expr& e : q.weights.extra) e = to(e);
        out.parts.push_back(std::move(q));
    }
    out.out = to(v.out);
    out.heads = to(v.heads);
    out.columns = to(v.columns);
    out.lse = to(v.lse);
    out.order = v.order;
    out.text = v.text;
    out.row_is_empty = to(v.row_is_empty);
    out.row_lse = to(v.row_lse);
    for (const Fact& f : v.facts) {
        Fact g = f;
        g.left = to(f.left);
        g.right = to(f.right);
        out.facts.push_back(std::move(g));
    }
    return out;
}

} // namespace cubridge::ir
