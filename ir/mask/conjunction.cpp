// SPDX-License-Identifier: Apache-2.0
#include "ir/mask/conjunction.h"
#include "ir/mask/extent.h"

namespace cubridge::ir::mask {

namespace {

constexpr std::size_t kMaxConjunctions = 16, kMaxAtoms = 32;
/// A tile of keys is never smaller: that a congruence skips keys saves no tile.
constexpr std::int64_t kMaxSparse = 16;

using Form = std::optional<std::vector<Conjunction>>;

Form both(const Form& a, const Form& b) {
    if (!a || !b || a->size() * b->size() > kMaxConjunctions) return {};
    std::vector<Conjunction> out;
    for (const Conjunction& x : *a)
        for (const Conjunction& y : *b) {
            Conjunction c = x;
            c.lower.insert(c.lower.end(), y.lower.begin(), y.lower.end());
            c.upper.insert(c.upper.end(), y.upper.begin(), y.upper.end());
            c.rows.insert(c.rows.end(), y.rows.begin(), y.rows.end());
            c.sparse = x.sparse || y.sparse;
            if (c.lower.size() + c.upper.size() + c.rows.size() > kMaxAtoms) return {};
            out.push_back(std::move(c));
        }
    return out;
}

Form either(const Form& a, const Form& b) {
    if (!a || !b || a->size() + b->size() > kMaxConjunctions) return {};
    std::vector<Conjunction> out = *a;
    out.insert(out.end(), b->begin(), b->end());
    return out;
}

// The one term of `e` with j in it, its coefficient and the rest; null where there are several.
struct Solved {
    Expr term = nullptr, rest = nullptr;
    std::int64_t coefficient = 1;
};
Solved term_of_j(ExprPool& p, Expr e) {
    if (e->kind != Kind::Sum) return {e, p.integer(0), 1};
    Solved s;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        if (!has(e->args[k], axis::j)) continue;
        if (s.term) return {};
        s.term = e->args[k];
        s.coefficient = e->icoef[k];
    }
    s.rest = p.isum(0, {{1, e}, {-s.coefficient, s.term}});
    return s;
}

Expr divided(ExprPool& p, Expr e, std::int64_t by) {
    return p.apply(Op::FloorDiv, e, p.integer(by));
}

// e <= 0
Form at_most_zero(ExprPool& p, Expr e) {
    const Solved s = term_of_j(p, e);
    if (!s.term || has(s.rest, axis::j)) return {};
    const bool above = s.coefficient > 0; // term <= bound, else term >= bound
    const std::int64_t c = above ? s.coefficient : -s.coefficient;
    const Expr down = divided(p, p.isum(0, {{-1, s.rest}}), c); // floor(-rest / c)
    const Expr bound = above ? down : p.isum(0, {{-1, down}});
    if (s.term->kind == Kind::Index) {
        Conjunction one;
        (above ? one.upper : one.lower).push_back(above ? p.isum(1, {{1, bound}}) : bound);
        return std::vector{one};
    }
    if (s.term->kind != Kind::FloorDiv || !is_const(s.term->args[1]) || s.term->args[1]->integer <= 0) return {};
    const Expr x = s.term->args[0];
    const std::int64_t n = s.term->args[1]->integer;
    // x // n <= q is x <= n q + n - 1, and x // n >= q is x >= n q
    return above ? at_most_zero(p, p.isum(1 - n, {{1, x}, {-n, bound}}))
                 : at_most_zero(p, p.isum(0, {{-1, x}, {n, bound}}));
}

bool small_congruence(ExprPool& p, Expr e) {
    const Solved s = term_of_j(p, e);
    if (!s.term || has(s.rest, axis::j) || s.term->kind != Kind::Mod || !is_const(s.term->args[1])) return false;
    const std::int64_t n = s.term->args[1]->integer;
    const Solved x = term_of_j(p, s.term->args[0]);
    return n > 1 && n <= kMaxSparse && x.term && x.term->kind == Kind::Index;
}

Form form(ExprPool& p, Expr e) {
    if (is_const(e)) return is_true(e) ? std::vector<Conjunction>(1) : std::vector<Conjunction>();
    if (e->kind == Kind::And || e->kind == Kind::Or) {
        Form all = form(p, e->args[0]);
        for (std::size_t k = 1; k < e->args.size() && all; ++k)
            all = e->kind == Kind::And ? both(all, form(p, e->args[k])) : either(all, form(p, e->args[k]));
        return all;
    }
    if (!has(e, axis::j)) {
        Conjunction one;
        one.rows.push_back(e);
        return std::vector{one};
    }
    const Expr atom = e->kind == Kind::Not ? e->args[0] : e;
    if (atom->kind != Kind::Cmp || atom->args.size() != 1) return {};
    const Expr x = atom->args[0], zero = p.integer(0), minus = p.isum(0, {{-1, x}});
    if (atom->op == Op::Eq && small_congruence(p, x)) { // most keys, or most but a few
        Conjunction one;
        one.sparse = true;
        return std::vector{one};
    }
    if (atom->op == Op::Eq) {
        const Op below = e->kind == Kind::Not ? Op::Lt : Op::Le;
        const auto other = form(p, p.apply(below, minus, zero)); // first: what is made earlier is sorted before
        const auto one = form(p, p.apply(below, x, zero));
        return e->kind == Kind::Not ? either(one, other) : both(one, other);
    }
    return e->kind == Kind::Not ? Form() : at_most_zero(p, x);
}

} // namespace

std::optional<std::vector<Conjunction>> conjunctions(ExprPool& pool, Expr keep) {
    return form(pool, keep);
}

} // namespace cubridge::ir::mask
