// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/congruence.h"
#include "ir/expr/build.h"
#include "ir/spec/variant.h"
#include <algorithm>
#include <numeric>
#include <optional>

namespace cubridge::ir::transfer {
namespace {

/// A class of more keys than that has less than a tile of them at usual lengths.
constexpr std::int64_t kMostClasses = 64;

bool has(Expr e, int axis) {
    return (e->free & index_bit(axis)) != 0;
}

std::int64_t inverse(std::int64_t a, std::int64_t modulus) {
    for (std::int64_t x = 1; x < modulus; ++x)
        if (floor_mod(a * x, modulus) == 1) return x;
    return 0;
}

class Finder {
public:
    explicit Finder(ExprPool& pool) : pool_(pool) {}

    std::vector<Congruence> implied(Expr e) {
        if (e->kind == Kind::And) {
            std::vector<Congruence> all;
            for (const Expr a : e->args)
                for (auto& c : implied(a)) all.push_back(std::move(c));
            return all;
        }
        if (e->kind == Kind::Or) { // what each alternative implies
            auto all = implied(e->args[0]);
            for (std::size_t k = 1; k < e->args.size(); ++k) {
                const auto here = implied(e->args[k]);
                std::vector<Congruence> both;
                for (const auto& c : all)
                    for (const auto& d : here)
                        if (auto shared = either(c, d)) both.push_back(std::move(*shared));
                all = std::move(both);
            }
            return all;
        }
        if (auto c = atom(e)) return {*c};
        return {};
    }

private:
    /// What follows from each of two: a congruence modulo a divisor of both.
    std::optional<Congruence> either(const Congruence& a, const Congruence& b) {
        const std::int64_t step = std::gcd(a.step, b.step);
        const Expr n = pool_.integer(step);
        if (step < 2 || (a.slope - b.slope) % step != 0 ||
            !is_int(pool_.apply(Op::Mod, pool_.sub(a.shift, b.shift), n), 0))
            return std::nullopt;
        Congruence out{step, a.slope % step, pool_.apply(Op::Mod, a.shift, n), {}};
        for (const Congruence* c : {&a, &b})
            if (c->step == step) out.says.insert(out.says.end(), c->says.begin(), c->says.end());
        return out;
    }

    /// x % n == r, where j has an inverse modulo n in x.
    std::optional<Congruence> atom(Expr e) {
        if (e->kind != Kind::Cmp || e->op != Op::Eq || e->args.size() != 1 || e->args[0]->type != Type::Int)
            return std::nullopt;
        const IntSum s = as_sum(e->args[0]);
        Expr mod = nullptr;
        std::int64_t sign = 0;
        std::vector<std::pair<std::int64_t, Expr>> rest;
        for (const auto& [c, t] : s.terms) {
            const bool position = has(t, axis::i) || has(t, axis::j);
            if (position && (mod || t->kind != Kind::Mod || std::abs(c) != 1 || !is_const(t->args[1])))
                return std::nullopt;
            if (position) {
                mod = t, sign = c;
            } else {
                rest.emplace_back(c, t);
            }
        }
        if (!mod || mod->args[1]->integer < 2 || !of_item(rest)) return std::nullopt;
        const std::int64_t n = mod->args[1]->integer;
        const Expr r = pool_.isum(0, {{-sign, pool_.isum(s.constant, rest)}}); // x % n == r
        const IntSum x = as_sum(mod->args[0]);
        std::int64_t of_i = 0, of_j = 0;
        rest = {{-1, r}};
        for (const auto& [c, t] : x.terms) {
            if (t == pool_.index(axis::i))
                of_i = c;
            else if (t == pool_.index(axis::j))
                of_j = c;
            else
                rest.emplace_back(c, t);
        }
        std::int64_t step = n; // a multiple of what is taken says more, and stays in the mask
        while (step > kMostClasses || (step > 1 && n % step != 0)) --step;
        if (step < 2 || std::gcd(floor_mod(of_j, step), step) != 1 || !of_item(rest)) return std::nullopt;
        // of_j j = -(of_i i + rest)
        const std::int64_t by = floor_mod(-inverse(floor_mod(of_j, step), step), step);
        Congruence out{step, floor_mod(by * floor_mod(of_i, step), step), nullptr, {}};
        out.shift = pool_.apply(Op::Mod, pool_.isum(0, {{by, pool_.isum(x.constant, rest)}}), pool_.integer(step));
        if (step == n && is_const(r) && r->integer >= 0 && r->integer < n) out.says.push_back(e);
        return out;
    }

    static bool of_item(const std::vector<std::pair<std::int64_t, Expr>>& terms) {
        return std::all_of(terms.begin(), terms.end(), [](const auto& t) {
            return (t.second->free & ~(index_bit(axis::b) | index_bit(axis::h))) == 0;
        });
    }

    ExprPool& pool_;
};

} // namespace

std::vector<Congruence> congruences(ExprPool& pool, Expr keep) {
    return Finder(pool).implied(keep);
}

Expr divided(ExprPool& pool, Expr keep, std::int64_t step) {
    return pool.rewrite(keep, [&](Expr e) -> Expr {
        if (e->kind != Kind::Cmp || e->op != Op::Le || e->args.size() != 1 || e->args[0]->type != Type::Int) return e;
        const IntSum s = as_sum(e->args[0]);
        std::vector<std::pair<std::int64_t, Expr>> whole, rest;
        for (const auto& [c, t] : s.terms) {
            if (has(t, axis::j) && c % step != 0) return e;
            (c % step == 0 ? whole : rest).emplace_back(c % step == 0 ? c / step : -c, t);
        }
        if (rest.empty() ||
            !std::any_of(whole.begin(), whole.end(), [](const auto& t) { return has(t.second, axis::j); }))
            return e;
        const Expr bound = pool.apply(Op::FloorDiv, pool.isum(-s.constant, rest), pool.integer(step));
        whole.emplace_back(-1, bound);
        return pool.apply(Op::Le, pool.isum(0, whole), pool.integer(0));
    });
}

} // namespace cubridge::ir::transfer
