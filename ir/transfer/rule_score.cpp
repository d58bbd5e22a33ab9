// What is made of a score before the normaliser. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/build.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <algorithm>
#include <numeric>

namespace cubridge::ir::transfer {
namespace {

bool is_score(Expr e) {
    return e->kind == Kind::Load && e->number == kScore;
}

bool reads_score(Expr e) {
    return contains(e, is_score);
}

/// e = factor * s + rest.
struct Linear {
    Expr factor, rest;
};

class Scores {
public:
    Scores(ExprPool& pool, Expr keep) : pool_(pool) {
        for (const Expr c : keep->kind == Kind::And ? keep->args : std::vector<Expr>{keep})
            if (c->kind == Kind::Cmp && c->op == Op::Le && c->args.size() == 1) at_most_0_.push_back(c->args[0]);
    }

    /// What keep says of a pair decides which argument of max(a, b) is the larger: |i - j| under j <= i.
    Expr under_keep(Expr e) {
        return pool_.rewrite(e, [&](Expr x) -> Expr {
            if (x->kind != Kind::Max || x->type != Type::Int || x->args.size() != 2) return x;
            for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
                for (const Expr bound : at_most_0_)
                    for (const std::int64_t times : {1, 2}) {
                        // args[k] - args[1 - k] - times * bound is a constant <= 0
                        const Expr d = pool_.isum(0, {{1, x->args[k]}, {-1, x->args[1 - k]}, {-times, bound}});
                        if (is_const(d) && d->integer <= 0) return x->args[1 - k];
                    }
            return x;
        });
    }

    /// real(j - i - offset) as a column, from the agent's first row on the diagonal, and a row, from its first row:
    /// both are small where weights are not, whatever the lengths.
    Expr separated(Expr e) {
        return pool_.rewrite(e, [&](Expr x) -> Expr {
            if (x->kind != Kind::Cast || x->type != Type::Real || x->args[0]->type != Type::Int) return x;
            const Expr n = x->args[0];
            if (n->kind == Kind::Max && n->args.size() == 2 && pool_.isum(0, {{-1, n->args[0]}}) == n->args[1]) {
                const Expr inner = separated(pool_.cast(Type::Real, n->args[0]));
                return inner->kind == Kind::Sum ? pool_.apply(Op::Abs, inner) : x;
            }
            Terms columns, rows; // what neither i nor j decides goes to the columns: both are 0 on the diagonal
            const IntSum s = as_sum(n);
            std::int64_t slope = 0, along = 0;
            for (const auto& [c, t] : s.terms) {
                const bool i = (t->free & index_bit(axis::i)) != 0, j = (t->free & index_bit(axis::j)) != 0;
                if (i && j) return x;
                (i ? rows : columns).emplace_back(c, t);
                if (t == pool_.index(axis::j)) slope = c;
                if (t == pool_.index(axis::i)) along = c;
            }
            const Expr first = pool_.index(place::first);
            if (slope == 0 || rows.empty()) return x;
            if (along == 0) along = -slope;
            columns.emplace_back(along, first);
            rows.emplace_back(-along, first);
            const auto positive = [&](std::int64_t constant, Terms terms, bool turned) { // times its common divisor
                std::int64_t all = constant;
                for (const auto& [c, t] : terms) all = std::gcd(all, c);
                all = std::max<std::int64_t>(all, 1); // of nothing but zeros
                const std::int64_t by = turned ? -all : all;
                for (auto& [c, t] : terms) c /= by;
                return std::pair{static_cast<double>(by), as_real(pool_.isum(constant / by, std::move(terms)))};
            };
            return pool_.rsum(0, {positive(s.constant, columns, slope < 0), positive(0, rows, along < 0)});
        });
    }

    /// factor * (a + b) as a sum, where a sum of casts is a factor.
    Expr distributed(Expr e) {
        if (e->kind == Kind::Sum && e->type == Type::Real) {
            std::vector<std::pair<double, Expr>> terms;
            for (std::size_t k = 0; k < e->args.size(); ++k) terms.emplace_back(e->rcoef[k], distributed(e->args[k]));
            return flat(e->real, terms);
        }
        if (e->kind != Kind::Product || e->type != Type::Real) return e;
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const Expr f = e->args[k];
            const bool casts = f->kind == Kind::Sum && f->real == 0 && e->num[k] == 1 && e->den[k] == 1 &&
                               std::all_of(f->args.begin(), f->args.end(),
                                           [](Expr a) { return a->kind == Kind::Load && a->number == kReal; });
            if (!casts) continue;
            std::vector<ExprPool::Power> rest;
            for (std::size_t m = 0; m < e->args.size(); ++m)
                if (m != k) rest.push_back({e->args[m], e->num[m], e->den[m]});
            std::vector<std::pair<double, Expr>> terms;
            for (std::size_t m = 0; m < f->args.size(); ++m) {
                auto factors = rest;
                factors.push_back({f->args[m], 1, 1});
                terms.emplace_back(f->rcoef[m], pool_.product(Type::Real, factors));
            }
            return pool_.rsum(0, terms);
        }
        return e;
    }

    std::optional<Linear> linear(Expr e) {
        if (is_score(e)) return Linear{pool_.real(1), pool_.real(0)};
        if (e->kind == Kind::Product) {
            std::vector<ExprPool::Power> rest;
            int found = 0;
            for (std::size_t k = 0; k < e->args.size(); ++k) {
                if (!reads_score(e->args[k])) {
                    rest.push_back({e->args[k], e->num[k], e->den[k]});
                } else if (is_score(e->args[k]) && e->num[k] == 1 && e->den[k] == 1) {
                    ++found;
                } else {
                    return std::nullopt;
                }
            }
            if (found != 1) return std::nullopt;
            return Linear{pool_.product(Type::Real, rest), pool_.real(0)};
        }
        if (e->kind == Kind::Select && (e->args[0]->free & (index_bit(axis::i) | index_bit(axis::j))) == 0) {
            const auto a = linear(e->args[1]), b = linear(e->args[2]);
            if (!a || !b) return std::nullopt;
            std::vector<std::pair<double, Expr>> rest;
            const Expr zero = pool_.real(0);
            terms_of(distributed(a->rest),
                     [&](double c, Expr t) { rest.emplace_back(c, pool_.select(e->args[0], t, zero)); });
            terms_of(distributed(b->rest),
                     [&](double c, Expr t) { rest.emplace_back(c, pool_.select(e->args[0], zero, t)); });
            return Linear{pool_.select(e->args[0], a->factor, b->factor), pool_.rsum(0, rest)};
        }
        if (e->kind != Kind::Sum) return std::nullopt;
        std::optional<Linear> out;
        std::vector<std::pair<double, Expr>> rest;
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            if (!reads_score(e->args[k])) {
                rest.emplace_back(e->rcoef[k], e->args[k]);
                continue;
            }
            if (out) return std::nullopt;
            out = linear(e->args[k]);
            if (!out || out->rest != pool_.real(0)) return std::nullopt;
            out->factor = pool_.rsum(0, {{e->rcoef[k], out->factor}});
        }
        if (out) out->rest = pool_.rsum(e->real, rest);
        return out;
    }

    /// Takes terms of the row out that are finite whenever the scores are: they don't change a softmax.
    Expr without_row_terms(Expr e, Writer& writer, Expr& taken) {
        if (e->kind != Kind::Sum) return e;
        std::vector<std::pair<double, Expr>> kept, out;
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const Expr t = e->args[k];
            const bool finite = contains(t, [&](Expr x) { return x == pool_.index(place::first); });
            (finite && writer.level(t) == Level::Row ? out : kept).emplace_back(e->rcoef[k], t);
        }
        if (out.empty()) return e;
        taken = pool_.rsum(0, out);
        return pool_.rsum(e->real, kept);
    }

private:
    using Terms = std::vector<std::pair<std::int64_t, Expr>>;
    Expr as_real(Expr n) { return pool_.load(kReal, Type::Real, {n}); }

    template <class F> void terms_of(Expr e, F f) {
        if (e->kind != Kind::Sum) {
            if (e != pool_.real(0)) f(1.0, e);
            return;
        }
        for (std::size_t k = 0; k < e->args.size(); ++k) f(e->rcoef[k], e->args[k]);
        if (e->real != 0) f(1.0, pool_.real(e->real));
    }

    Expr flat(double constant, const std::vector<std::pair<double, Expr>>& terms) { // sums inside sums opened
        std::vector<std::pair<double, Expr>> out;
        for (const auto& [c, t] : terms) {
            if (t->kind != Kind::Sum) {
                out.emplace_back(c, t);
                continue;
            }
            for (std::size_t k = 0; k < t->args.size(); ++k) out.emplace_back(c * t->rcoef[k], t->args[k]);
            constant += c * t->real;
        }
        return pool_.rsum(constant, out);
    }

    ExprPool& pool_;
    std::vector<Expr> at_most_0_;
};

/// Where the score itself is loaded from, as an expression that reads it has it.
std::vector<Expr> score_index(Expr e) {
    std::vector<Expr> at;
    contains(e, [&](Expr x) {
        if (is_score(x)) at = x->args;
        return is_score(x);
    });
    return at;
}

/// Positive whatever the launch: a number or powers of sizes.
bool positive(Expr e) {
    if (is_const(e)) return e->real > 0;
    if (e->kind == Kind::Dim) return true;
    if (e->kind == Kind::Cast) return positive(e->args[0]);
    if (e->kind == Kind::Sum)
        return e->type == Type::Real && e->real >= 0 &&
               std::all_of(e->rcoef.begin(), e->rcoef.end(), [](double c) { return c > 0; }) &&
               std::all_of(e->args.begin(), e->args.end(), positive);
    return e->kind == Kind::Product && std::all_of(e->args.begin(), e->args.end(), positive);
}

/// Factors of a weight that every key of a row shares multiply the sum instead.
Expr factored(Work& w, Expr e) {
    ExprPool& pool = w.launch.pool;
    if (e->kind != Kind::Product) return e;
    std::vector<ExprPool::Power> shared, own;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        // what data decide may be inf, and 0 * inf would reach rows without keys
        const bool key = contains(
            e->args[k], [](Expr x) { return x->kind == Kind::Load || x->kind == Kind::Arg || x->kind == Kind::Index; });
        (key ? own : shared).push_back({e->args[k], e->num[k], e->den[k]});
    }
    // a factor of the score itself belongs to it
    const bool is_plain = own.size() == 1 && is_score(own[0].base);
    if (shared.empty() || own.empty() || is_plain || w.launch.v.parts.size() > 1) return e;
    Expr factor = pool.product(Type::Real, shared);
    const bool divides = std::any_of(shared.begin(), shared.end(), [](const auto& f) { return f.num < 0; });
    if (divides) // the sum over no keys is 0, whatever they are divided by
        factor = pool.select(pool.apply(Op::Le, w.part.keys, pool.integer(0)), pool.real(0), factor);
    w.launch.v.out = pool.rewrite(w.launch.v.out, [&](Expr x) {
        if (x->kind != Kind::Load || x->number != kOutput) return x;
        return pool.product(Type::Real, {{x, 1, 1}, {factor, 1, 1}});
    });
    w.applied("factors of a row multiply its sum");
    return pool.product(Type::Real, own);
}

} // namespace

void score(Work& w) {
    ExprPool& pool = w.launch.pool;
    Scores rules(pool, w.part.keep);
    Part& p = w.part;
    const bool softmax = p.weights.kind == Weights::Kind::Softmax;
    Expr e = rules.under_keep(softmax ? p.score : p.weights.value);
    const Spot unit = w.in(w.kernel.body, w.at.unit);
    Local local(w, Local::Where::Attend);
    const auto x_is = [&](Expr value) {
        auto made = score_statements(w, local, value); // before the Spot is found: what is hoisted moves statements
        const Spot x = first(w.attend(), [&](const cuir::Statement& s) { return assigns(s, w.at.x); });
        auto& block = *x.block;
        made.front().comment = block[x.at].comment;
        const auto at = block.erase(block.begin() + static_cast<std::ptrdiff_t>(x.at));
        block.insert(at, std::make_move_iterator(made.begin()), std::make_move_iterator(made.end()));
        std::size_t k = x.at;
        for (const auto& s : local.made) w.insert({x.block, k++}, s);
    };
    if (!softmax) {
        if (p.weights.kind == Weights::Kind::Pointwise) e = factored(w, e);
        x_is(rules.distributed(rules.separated(derive(w, e))));
        w.erase(w.in(w.kernel.body, w.at.unit));
        w.applied("pointwise weights");
        return;
    }
    if (const auto l = rules.linear(e);
        l && l->rest == pool.real(0) && positive(l->factor) && local.writer.level(l->factor) == Level::Kernel) {
        const std::string line = w.at.unit + " = " + text(local.writer.make(scaled(pool, l->factor, log2e(pool))));
        if (line == line_of(*unit)) return;
        w.replace(unit, line);
        w.applied("scale");
        return;
    }
    e = rules.distributed(rules.separated(derive(w, scaled(pool, e, log2e(pool)))));
    const auto l = rules.linear(e);
    if (l) {
        const Expr s = pool.load(kScore, Type::Real, score_index(e));
        e = rules.distributed(
            pool.rsum(0, {{1, pool.product(Type::Real, {{s, 1, 1}, {l->factor, 1, 1}})}, {1, l->rest}}));
    }
    if (p.weights.extra.empty()) e = rules.without_row_terms(e, local.writer, w.row_shift);
    w.replace(unit, w.at.unit + " = 1.0");
    x_is(e);
    w.applied(l ? "score: scale and bias" : "score: modified");
}

} // namespace cubridge::ir::transfer
