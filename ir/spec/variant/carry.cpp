// Copying a Variant into a new pool. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/variant/carry.h"
#include <set>
#include <unordered_map>
#include <vector>

namespace cubridge::ir {
namespace {

/// Carries expressions into another pool, all at once: children are made before their parents, everything in its old
/// order, so that normal forms, which sort by it, stay what they are.
class Copy {
public:
    Copy(const ExprPool& from, ExprPool& to) : from_(from), to_(to) {}
    void operator()(Expr& e) {
        if (!e) return;
        places_.push_back(&e);
        const auto visit = [&](auto&& self, Expr x) -> void {
            if (!all_.insert(x).second) return;
            for (const Expr a : x->args) self(self, a);
        };
        visit(visit, e);
    }
    void run() {
        std::unordered_map<Expr, Expr> done;
        for (const Expr x : all_) {
            ExprNode node = *x;
            for (Expr& a : node.args) a = done.at(a);
            if (x->kind == Kind::Table) node.number = to_.add_table(from_.table(x->number));
            done.emplace(x, to_.intern(std::move(node)));
        }
        for (Expr* e : places_) *e = done.at(*e);
    }

private:
    struct Before {
        bool operator()(Expr a, Expr b) const { return a->id < b->id; }
    };
    const ExprPool& from_;
    ExprPool& to_;
    std::set<Expr, Before> all_;
    std::vector<Expr*> places_;
};

/// Every expression of a Variant.
template <class F> void each(Variant& v, F f) {
    for (Part& p : v.parts) {
        for (Expr* e :
             {&p.q, &p.k, &p.v, &p.inner, &p.keys, &p.score, &p.keep, &p.weights.value, &p.weights.rest, &p.gain})
            f(*e);
        for (Expr& e : p.weights.extra) f(e);
    }
    for (Expr* e : {&v.out, &v.heads, &v.columns, &v.lse, &v.row_is_empty, &v.row_lse}) f(*e);
    for (Fact& fact : v.facts) f(fact.left), f(fact.right);
}

/// The text's rows of a kernel that has the last ones.
class Tail {
public:
    explicit Tail(ExprPool& pool)
        : pool_(pool), Sk_(pool.dim(dims::Sk)), ahead_(pool.sub(Sk_, pool.dim(dims::Sq))),
          row_(pool.add(pool.index(axis::i), ahead_)) {}

    void shift(Expr& e) {
        if (!e) return;
        const Expr text =
            pool_.rewrite(e, [&](Expr x) { return x->kind == Kind::Dim && x->number == dims::Sq ? Sk_ : x; });
        std::vector<Expr> map(axis::Count, nullptr);
        map[axis::i] = row_;
        // Loads of q, of scores and of parts' outputs keep the kernel's own row.
        e = pool_.rewrite(pool_.substitute(text, map), [&](Expr x) {
            const bool own = x->kind == Kind::Load && (x->number == 0 || x->number >= kScore) && x->args.size() > 2;
            if (!own) return x;
            auto args = x->args;
            args[2] = pool_.sub(args[2], ahead_);
            return pool_.with_args(x, std::move(args));
        });
    }
    /// Rows before the text's first keep no key.
    void hide(Part& p) {
        p.keep = pool_.logical_and(p.keep, pool_.apply(Op::Le, pool_.integer(0), row_));
        if (p.empty == Part::Empty::Never) p.empty = Part::Empty::Zero;
    }

private:
    ExprPool& pool_;
    const Expr Sk_, ahead_, row_;
};

} // namespace

Variant carry(const Variant& v, bool tail) {
    Variant out = v;
    out.pool = std::make_shared<ExprPool>();
    Copy copy(*v.pool, *out.pool);
    each(out, [&](Expr& e) { copy(e); });
    copy.run();
    if (!tail) return out;
    Tail rows(*out.pool);
    each(out, [&](Expr& e) { rows.shift(e); });
    for (Part& p : out.parts) rows.hide(p);
    return out;
}

} // namespace cubridge::ir
