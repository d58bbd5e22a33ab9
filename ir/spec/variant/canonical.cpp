// One form for equal variants: masks as a minimal disjunction of conjunctions, key heads by one rule, what sizes decide
// decided. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/spec/variant/interior.h"
#include "ir/spec/variant/match.h"
#include <algorithm>

namespace cubridge::ir::variant {

namespace {

using Conjunction = std::vector<Expr>;
constexpr std::size_t kMaxConjunctions = 48;

// Largest value of an Int expression over 0 <= i < Sq, 0 <= j < Sk, 0 <= h < Hq, 0 <= b < B, as an expression over
// sizes.
Expr bound(ExprPool& pool, Expr e, const Part& p, bool largest) {
    IntSum s = as_sum(e);
    std::vector<std::pair<std::int64_t, Expr>> terms;
    std::int64_t constant = s.constant;
    const auto extent = [&](int axis) -> Expr {
        switch (axis) {
        case axis::b: return pool.dim(dims::B);
        case axis::h: return pool.dim(dims::Hq);
        case axis::i: return nullptr; // filled in by the caller's Sq
        default: return p.keys;
        }
    };
    for (const auto& [c, t] : s.terms) {
        if (t->kind != Kind::Index) {
            terms.emplace_back(c, t);
            continue;
        }
        if ((c > 0) != largest) continue; // at 0
        Expr n = extent(t->number);
        if (!n) n = pool.dim(dims::Sq);
        terms.emplace_back(c, n);
        constant -= c;
    }
    return pool.isum(constant, std::move(terms));
}

bool never_negative(Expr e) { // by sizes alone
    const IntSum s = as_sum(e);
    return s.constant >= 0 && std::all_of(s.terms.begin(), s.terms.end(),
                                          [](const auto& t) { return t.first >= 0 && t.second->kind == Kind::Dim; });
}

class Canonical {
public:
    Canonical(const Scalar& scalar, Variant& v) : scalar_(scalar), v_(v), pool_(*v.pool) {
        for (const Fact& f : scalar.facts)
            if (f.kind == Fact::Kind::Equal && f.left->kind == Kind::Dim && f.left->number == dims::Sq)
                square_ = f.right;
    }

    void run() {
        for (Part& p : v_.parts) {
            heads(p);
            p.keep = decide(p.keep, p);
            p.keep = disjunction(p.keep);
            if (p.score) p.score = clamps(p.score);
            if (p.weights.value) p.weights.value = clamps(p.weights.value);
            if (p.weights.extra.empty() && p.weights.kind == Weights::Kind::Softmax) {
                if (witness(p))
                    p.empty = Part::Empty::Never;
                else
                    p.empty = Part::Empty::Other; // to be found by evaluation
            }
        }
    }

private:
    // k[b, h, j, c] where Hq == Hk, and k[b, 0, j, c], are both k[b, h // (Hq // Hk), j, c].
    void heads(Part& p) {
        const Expr h = pool_.index(axis::h);
        const Expr kv =
            pool_.apply(Op::FloorDiv, h, pool_.apply(Op::FloorDiv, pool_.dim(dims::Hq), pool_.dim(dims::Hk)));
        const bool equal = std::any_of(scalar_.facts.begin(), scalar_.facts.end(), [](const Fact& f) {
            return f.kind == Fact::Kind::Equal && f.left->kind == Kind::Dim && f.left->number == dims::Hk &&
                   f.right->kind == Kind::Dim && f.right->number == dims::Hq;
        });
        const auto fix = [&](Expr e) {
            return pool_.rewrite(e, [&](Expr x) {
                if (x->kind != Kind::Load || (x->number != 1 && x->number != 2) || x->args.size() != 4) return x;
                const Expr at = x->args[1];
                const bool single = is_int(at, 0);
                if (!single && !(at == h && equal)) return x;
                if (single) {
                    Fact f{Fact::Kind::Equal, pool_.dim(dims::Hk), pool_.integer(1), {}, "Hk == 1"};
                    if (std::none_of(v_.facts.begin(), v_.facts.end(),
                                     [](const Fact& g) { return g.text == "Hk == 1"; }))
                        v_.facts.push_back(f);
                }
                return pool_.load(x->number, x->type, {x->args[0], kv, x->args[2], x->args[3]});
            });
        };
        p.k = fix(p.k);
        p.v = fix(p.v);
    }

    // max(min(x, hi), lo) is min(max(x, lo), hi) where lo <= hi; a captured bound is not negative, as a fact.
    Expr clamps(Expr e) {
        return pool_.rewrite(e, [&](Expr x) {
            if (x->kind != Kind::Max || x->type != Type::Int || x->args.size() != 2) return x;
            for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
                const Expr inner = x->args[k], lo = x->args[1 - k];
                if (inner->kind != Kind::Min || inner->args.size() != 2) continue;
                for (const std::size_t m : {std::size_t{0}, std::size_t{1}}) {
                    const Expr hi = inner->args[m], v = inner->args[1 - m];
                    const IntSum gap = as_sum(pool_.sub(hi, lo));
                    if (gap.constant < 0 || !std::all_of(gap.terms.begin(), gap.terms.end(), [](const auto& t) {
                            return t.first > 0 && (t.second->kind == Kind::Arg || t.second->kind == Kind::Dim);
                        }))
                        continue;
                    for (const auto& [c, t] : gap.terms)
                        if (t->kind == Kind::Arg)
                            v_.facts.push_back({Fact::Kind::AtLeast, t, pool_.integer(0), {}, debug_text(t) + " >= 0"});
                    return pool_.extremum(Kind::Min, {pool_.extremum(Kind::Max, {v, lo}), hi});
                }
            }
            return x;
        });
    }

    Expr sized(Expr e) { // Sq under the fact Sq == Sk
        return square_ ? pool_.rewrite(
                             e, [&](Expr x) { return x->kind == Kind::Dim && x->number == dims::Sq ? square_ : x; })
                       : e;
    }

    Expr decide(Expr keep, const Part& p) {
        return pool_.rewrite(keep, [&](Expr x) {
            if (x->kind != Kind::Cmp || x->args.size() != 1 || x->op != Op::Le) return x;
            const Expr most = sized(bound(pool_, x->args[0], p, true)),
                       least = sized(bound(pool_, x->args[0], p, false));
            if (never_negative(pool_.isum(0, {{-1, most}}))) return pool_.boolean(true);
            if (never_negative(pool_.isum(-1, {{1, least}}))) return pool_.boolean(false);
            return x;
        });
    }

    static bool is_bound(Expr e) { return e->kind == Kind::Cmp && e->op == Op::Le && e->args.size() == 1; }

    // a implies b, as comparisons with 0 that differ by a constant
    bool implies(Expr a, Expr b) {
        if (a == b) return true;
        if (a->kind == Kind::Cmp && b->kind == Kind::Cmp && a->args.size() == 1 && b->args.size() == 1 &&
            b->op == Op::Le) {
            const Expr d = pool_.sub(b->args[0], a->args[0]);
            if (is_const(d) && d->integer <= 0) return true;
            if (a->op == Op::Eq) { // a == 0 says -a <= 0 as well
                const Expr m = pool_.add(b->args[0], a->args[0]);
                return is_const(m) && m->integer <= 0;
            }
        }
        // x - k <= 0 and x == c: not (x == c) where k < c
        if (b->kind == Kind::Not && a->kind == Kind::Cmp && a->op == Op::Le && a->args.size() == 1) {
            const Expr e = b->args[0];
            if (e->kind != Kind::Cmp || e->op != Op::Eq || e->args.size() != 1) return false;
            const Expr d = pool_.sub(e->args[0], a->args[0]), m = pool_.add(e->args[0], a->args[0]);
            return (is_const(d) && d->integer < 0) || (is_const(m) && m->integer > 0);
        }
        return false;
    }

    bool contradicts(Expr a, Expr b) { return implies(a, pool_.logical_not(b)); }

    // Under x[i] == x[j] what is said of x[j] is said of x[i].
    void transfer(Conjunction& c) {
        for (std::size_t k = 0; k < c.size();
             ++k) { // by what stands there now: an equation may have been rewritten itself
            const Expr eq = c[k];
            if (eq->kind != Kind::Cmp || eq->op != Op::Eq || eq->args.size() != 1) continue;
            const IntSum s = as_sum(eq->args[0]);
            if (s.constant != 0 || s.terms.size() != 2 || s.terms[0].first != -s.terms[1].first ||
                std::abs(s.terms[0].first) != 1)
                continue;
            const auto of = [](Expr e, int axis) { return (e->free & index_bit(axis)) != 0; };
            Expr row = s.terms[0].second, column = s.terms[1].second;
            if (of(row, axis::j)) std::swap(row, column);
            if (of(row, axis::j) || !of(column, axis::j)) continue;
            for (Expr& e : c)
                if (e != eq) e = pool_.rewrite(e, [&](Expr x) { return x == column ? row : x; });
        }
        std::sort(c.begin(), c.end(), [](Expr a, Expr b) { return a->id < b->id; });
        c.erase(std::unique(c.begin(), c.end()), c.end());
    }

    bool simplify(Conjunction& c) { // false: it never holds
        transfer(c);
        std::erase_if(c, is_true);
        if (std::any_of(c.begin(), c.end(), is_false)) return false;
        for (const Expr a : c)
            for (const Expr b : c)
                if (a != b && contradicts(a, b)) return false;
        for (std::size_t k = 0; k < c.size();) { // by what is still there: two may follow from each other
            bool needed = true;
            for (std::size_t m = 0; m < c.size() && needed; ++m)
                if (m != k && implies(c[m], c[k]) && !(implies(c[k], c[m]) && k < m)) needed = false;
            for (std::size_t m = 0; m < c.size() && needed; ++m) // -w <= 0 follows from x <= w and -x <= w
                for (std::size_t n = m + 1; n < c.size() && needed; ++n)
                    if (m != k && n != k && is_bound(c[m]) && is_bound(c[n]) &&
                        implies(pool_.apply(Op::Le, pool_.add(c[m]->args[0], c[n]->args[0]), pool_.integer(0)), c[k]))
                        needed = false;
            if (needed)
                ++k;
            else
                c.erase(c.begin() + static_cast<std::ptrdiff_t>(k));
        }
        return true;
    }

    bool covers(const Conjunction& wide, const Conjunction& narrow) {
        return std::all_of(wide.begin(), wide.end(), [&](Expr w) {
            return std::any_of(narrow.begin(), narrow.end(), [&](Expr n) { return implies(n, w); });
        });
    }

    std::optional<std::vector<Conjunction>> expand(Expr e) {
        if (e->kind == Kind::Or) {
            std::vector<Conjunction> all;
            for (const Expr a : e->args) {
                const auto part = expand(a);
                if (!part || all.size() + part->size() > kMaxConjunctions) return std::nullopt;
                all.insert(all.end(), part->begin(), part->end());
            }
            return all;
        }
        if (e->kind == Kind::And) {
            std::vector<Conjunction> all{{}};
            for (const Expr a : e->args) {
                const auto part = expand(a);
                if (!part || all.size() * part->size() > kMaxConjunctions) return std::nullopt;
                std::vector<Conjunction> next;
                for (const auto& x : all)
                    for (const auto& y : *part) {
                        Conjunction c = x;
                        for (const Expr t : y)
                            if (std::find(c.begin(), c.end(), t) == c.end()) c.push_back(t);
                        next.push_back(std::move(c));
                    }
                all = std::move(next);
            }
            return all;
        }
        return std::vector<Conjunction>{{e}};
    }

    Expr disjunction(Expr keep) {
        if (is_const(keep)) return keep;
        auto all = expand(keep);
        if (!all) return keep;
        for (int round = 0; round < 4; ++round) {
            std::vector<Conjunction> kept;
            for (Conjunction& c : *all)
                if (simplify(c)) {
                    std::sort(c.begin(), c.end(), [](Expr a, Expr b) { return a->id < b->id; });
                    if (std::find(kept.begin(), kept.end(), c) == kept.end()) kept.push_back(c);
                }
            std::vector<Conjunction> least;
            for (std::size_t k = 0; k < kept.size(); ++k) {
                bool needed = true;
                for (std::size_t m = 0; m < kept.size() && needed; ++m)
                    if (m != k && covers(kept[m], kept[k]) && !(covers(kept[k], kept[m]) && k < m)) needed = false;
                if (needed) least.push_back(kept[k]);
            }
            // (A and x) or (A and not x) is A; (A and x) or (not x and B) with B within A is (A and x) or B
            bool changed = least.size() != all->size();
            for (Conjunction& c : least)
                for (std::size_t t = 0; t < c.size(); ++t) {
                    Conjunction without = c;
                    without.erase(without.begin() + static_cast<std::ptrdiff_t>(t));
                    const Expr opposite = pool_.logical_not(c[t]);
                    Conjunction flipped = without;
                    flipped.push_back(opposite);
                    const bool drop = std::any_of(least.begin(), least.end(),
                                                  [&](const Conjunction& o) { return &o != &c && covers(o, flipped); });
                    if (drop) {
                        c = without;
                        changed = true;
                        break;
                    }
                }
            *all = std::move(least);
            if (!changed) break;
        }
        std::vector<Expr> any;
        for (const Conjunction& c : *all) any.push_back(pool_.logical_and(Conjunction(c)));
        return pool_.logical_or(std::move(any));
    }

    // Some key is kept in every row: try the first, the diagonal from either end, the last.
    bool witness(const Part& p) {
        const Expr i = pool_.index(axis::i), zero = pool_.integer(0), last = pool_.sub(p.keys, pool_.integer(1));
        std::vector<Expr> candidates{zero, last};
        if (square_ && square_ == p.keys) candidates.push_back(i);
        for (const Expr w : candidates) {
            std::vector<Expr> map(axis::Count);
            map[axis::j] = w;
            Expr k = pool_.substitute(p.keep, map);
            k = decide(k, p);
            if (is_true(k)) return true;
        }
        return false;
    }

    const Scalar& scalar_;
    Variant& v_;
    ExprPool& pool_;
    Expr square_ = nullptr;
};

} // namespace

void canonicalise(const Scalar& scalar, Variant& v) {
    Canonical(scalar, v).run();
}

} // namespace cubridge::ir::variant
