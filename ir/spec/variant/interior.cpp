// SPDX-License-Identifier: Apache-2.0
#include "ir/spec/variant/interior.h"
#include "cubridge/ir/error.h"
#include "ir/spec/variant.h"
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace cubridge::ir::variant {

namespace {
constexpr double kInf = HUGE_VAL;
constexpr int kRounds = 8;
constexpr std::int64_t kMaxPower = std::int64_t{1} << 20;

// The element of a Real input beyond q, k, v, as it is or in a sum; weights and row statistics of such are finite.
bool reads_captured(Expr e) {
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> bool {
        if (x->kind == Kind::Reduce ||
            (x->kind == Kind::Fn && (x->op == Op::Exp || x->op == Op::Exp2 || x->op == Op::Sigmoid)) ||
            !seen.insert(x).second)
            return false;
        if ((x->kind == Kind::Load || x->kind == Kind::Arg) && x->type == Type::Real && x->number > 2 &&
            x->number < kScore)
            return true;
        return std::any_of(x->args.begin(), x->args.end(), [&](Expr a) { return self(self, a); });
    };
    return visit(visit, e);
}
} // namespace

bool is_minus_infinity(Expr e) {
    return is_real(e, -kInf);
}
bool is_zero(Expr e) {
    return is_real(e, 0);
}

bool Interior::positive(Expr e) const {
    pool_.meter().spend(1);
    switch (e->kind) {
    case Kind::Const: return e->type == Type::Int ? e->integer > 0 : e->real > 0;
    case Kind::Dim: return !dims::is_input(e->number); // a captured tensor may be empty
    case Kind::Cast: return e->args[0]->type == Type::Int && positive(e->args[0]);
    case Kind::Fn: return e->op == Op::Exp || e->op == Op::Exp2 || e->op == Op::Sigmoid;
    case Kind::Reduce: // a sum of weights of which one is kept
        if (e->reduce != ReduceOp::Sum) return false;
        {
            const Expr b = e->args[0];
            if (b->kind == Kind::Select && (is_zero(b->args[1]) || is_zero(b->args[2])))
                return positive(is_zero(b->args[2]) ? b->args[1] : b->args[2]);
            return positive(b);
        }
    case Kind::Sum:
        if (e->type == Type::Int ? e->integer < 0 : e->real < 0) return false;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            if ((e->type == Type::Int ? static_cast<double>(e->icoef[k]) : e->rcoef[k]) <= 0 || !positive(e->args[k]))
                return false;
        return true;
    case Kind::Product: return std::all_of(e->args.begin(), e->args.end(), [&](Expr a) { return positive(a); });
    case Kind::Max: return std::any_of(e->args.begin(), e->args.end(), [&](Expr a) { return positive(a); });
    case Kind::Load: return e->number >= 9100 && e->number < 9200; // a sum of weights, see match.cpp
    default: return false;
    }
}

// Is (x^a y^b)^(num/den) the same as x^(a num/den) y^(b num/den), for negative x and y too?
bool Interior::opens(Expr product, double num, double den) const {
    int open = 0;
    for (std::size_t k = 0; k < product->args.size(); ++k) {
        if (positive(product->args[k]) || (den == 1 && product->den[k] == 1)) continue;
        const auto n = static_cast<double>(product->num[k]) * num, d = static_cast<double>(product->den[k]) * den;
        if (std::fmod(n, d) == 0) return false; // (x^2)^(1/2) is |x|
        if (den != 1 && (++open > 1 || (product->den[k] == 1 && product->num[k] % 2 == 0))) return false;
    }
    return true;
}

void Interior::collect(Expr e, double num, double den, Factors& out) {
    pool_.meter().spend(1);
    const double p = num / den;
    const auto power = [&](Expr base, double n, double d) {
        auto& f = out.factors.try_emplace(base, Factors::Power{0, 1}).first->second;
        if (std::fabs(n) > kMaxPower || std::fabs(d) > kMaxPower) fail("unsupported", "a power is too large");
        const auto pn = static_cast<std::int64_t>(n), pd = static_cast<std::int64_t>(d);
        for (const std::int64_t x : {pn, pd, f.num, f.den})
            if (x > kMaxPower || x < -kMaxPower) fail("unsupported", "a power is too large");
        if ((f.num < 0) != (pn < 0) && f.num != 0 && pn != 0 && !positive(base)) {
            // t / t is 1 except where t is 0 or infinite (and, of roots, negative): there it stays no number
            const std::int64_t root = std::lcm(f.den, pd);
            const Expr one = pool_.product(Type::Real, {{base, 1, root}, {base, -1, root}});
            out.factors[one] = {1, 1};
        }
        f.num = f.num * pd + pn * f.den;
        f.den *= pd;
        const std::int64_t g = f.num == 0 ? f.den : std::gcd(f.num, f.den);
        f.num /= g, f.den /= g;
        if (f.num == 0) out.factors.erase(base);
    };
    if (is_const(e)) {
        out.coefficient *= std::pow(e->real, p);
    } else if (e->kind == Kind::Sum && e->type == Type::Real && e->args.size() == 1 && e->real == 0 &&
               (e->rcoef[0] > 0 || den == 1)) {
        out.coefficient *= std::pow(e->rcoef[0], p);
        collect(e->args[0], num, den, out);
    } else if (e->kind == Kind::Product && e->type == Type::Real && opens(e, num, den)) {
        for (std::size_t k = 0; k < e->args.size(); ++k)
            collect(e->args[k], num * static_cast<double>(e->num[k]), den * static_cast<double>(e->den[k]), out);
    } else if (e->kind == Kind::Fn && e->op == Op::Exp) {
        const Expr a = e->args[0];
        const auto add = [&](Expr t, double c) {
            if (t && t->kind == Kind::Fn && t->op == Op::Log && c * p == std::floor(c * p) && positive(t->args[0])) {
                collect(t->args[0], c * p, 1, out); // exp(c log x) is x^c
                return;
            }
            double& v = out.exponent[t];
            if (v != 0 && (v < 0) != (c * p < 0) && t && reads_captured(t)) { // exp(t) may be 0
                const Expr weight = pool_.apply(Op::Exp, t);
                out.factors[pool_.product(Type::Real, {{weight, 1, 1}, {weight, -1, 1}})] = {1, 1};
            }
            v += c * p;
            if (v == 0) out.exponent.erase(t);
        };
        if (is_const(a)) {
            add(nullptr, a->real);
        } else if (a->kind == Kind::Sum) {
            if (a->real != 0) add(nullptr, a->real);
            for (std::size_t k = 0; k < a->args.size(); ++k) add(a->args[k], a->rcoef[k]);
        } else {
            add(a, 1);
        }
    } else if (e->kind == Kind::Sum && e->type == Type::Real && den == 1) {
        Factors shared;
        const Expr rest = common(e, shared);
        if (rest == e) {
            power(e, num, den);
            return;
        }
        out.coefficient *= std::pow(shared.coefficient, p);
        for (const auto& [t, c] : shared.exponent) {
            double& v = out.exponent[t];
            v += c * p;
            if (v == 0) out.exponent.erase(t);
        }
        for (const auto& [b, f] : shared.factors)
            power(b, num * static_cast<double>(f.num), den * static_cast<double>(f.den));
        collect(rest, num, den, out);
    } else {
        power(e, num, den);
    }
}

// What every term of a sum has as a factor goes to `out`.
Expr Interior::common(Expr e, Factors& out) {
    if (e->real != 0 || e->args.size() < 2) return e;
    std::vector<Factors> terms;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        terms.push_back({});
        collect(e->args[k], 1, 1, terms.back());
        terms.back().coefficient *= e->rcoef[k];
    }
    Factors shared;
    for (const auto& [t, c] : terms[0].exponent)
        if (std::all_of(terms.begin(), terms.end(), [&, &t = t, &c = c](const Factors& f) {
                const auto it = f.exponent.find(t);
                return it != f.exponent.end() && it->second == c;
            }))
            shared.exponent[t] = c;
    for (const auto& [b, p] : terms[0].factors)
        if (std::all_of(terms.begin(), terms.end(), [&, &b = b, &p = p](const Factors& f) {
                const auto it = f.factors.find(b);
                return it != f.factors.end() && it->second.num == p.num && it->second.den == p.den;
            }))
            shared.factors[b] = p;
    const double c = terms[0].coefficient;
    if (c != 1 && c != 0 &&
        std::all_of(terms.begin(), terms.end(), [&](const Factors& f) { return f.coefficient == c; }))
        shared.coefficient = c;
    if (shared.exponent.empty() && shared.factors.empty() && shared.coefficient == 1) return e;
    std::vector<std::pair<double, Expr>> rest;
    for (Factors& f : terms) {
        for (const auto& [t, v] : shared.exponent) f.exponent.erase(t);
        for (const auto& [b, v] : shared.factors) f.factors.erase(b);
        f.coefficient /= shared.coefficient;
        rest.emplace_back(1.0, build(f));
    }
    out = shared;
    return pool_.rsum(0, std::move(rest));
}

Factors Interior::factors(Expr e) {
    Factors f;
    collect(e, 1, 1, f);
    return f;
}

Expr Interior::build(const Factors& f) {
    std::vector<ExprPool::Power> out;
    for (const auto& [b, p] : f.factors) out.push_back({b, p.num, p.den});
    if (!f.exponent.empty()) {
        double constant = 0;
        std::vector<std::pair<double, Expr>> terms;
        for (const auto& [t, c] : f.exponent) {
            if (t)
                terms.emplace_back(c, t);
            else
                constant = c;
        }
        out.push_back({pool_.apply(Op::Exp, pool_.rsum(constant, std::move(terms))), 1, 1});
    }
    const Expr p = pool_.product(Type::Real, std::move(out));
    return f.coefficient == 1 ? p : pool_.rsum(0, {{f.coefficient, p}});
}

// f(..., Select(c, A, K), ...) is Select(c, f(..., A, ...), f(..., K, ...)) where the latter is a constant.
Expr Interior::lift(Expr e) {
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const Expr s = e->args[k];
        if (s->kind != Kind::Select || s->type != Type::Real) continue;
        for (const std::size_t side : {std::size_t{2}, std::size_t{1}}) {
            if (!is_const(s->args[side])) continue;
            const std::size_t other = 3 - side;
            if (is_const(s->args[other]) && is_minus_infinity(s->args[other])) continue; // the -inf side is the mask
            std::vector<Expr> args = e->args;
            args[k] = s->args[side];
            const Expr constant = simplify(pool_.with_args(e, args));
            if (!is_const(constant)) continue;
            args[k] = s->args[other];
            const Expr value = step(pool_.with_args(e, args));
            return side == 2 ? pool_.select(s->args[0], value, constant)
                             : pool_.select(pool_.logical_not(s->args[0]), value, constant);
        }
    }
    return e;
}

Expr Interior::sum(Expr e) {
    if (e->real == -kInf) return pool_.real(-kInf);
    for (std::size_t k = 0; k < e->args.size(); ++k)
        if (std::isinf(e->rcoef[k]) && positive(e->args[k])) return pool_.real(e->rcoef[k]);
    // finite values: x - x is 0, and 0 x is nothing; a captured tensor may hold -inf
    std::vector<std::pair<double, Expr>> terms;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const bool finite = !reads_captured(e->args[k]);
        const auto it = std::find_if(terms.begin(), terms.end(), [&](const auto& t) {
            return t.second == e->args[k] && (finite || (t.first < 0) == (e->rcoef[k] < 0));
        });
        if (it == terms.end())
            terms.emplace_back(e->rcoef[k], e->args[k]);
        else
            it->first += e->rcoef[k];
    }
    std::erase_if(terms, [](const auto& t) { return t.first == 0; });
    if (terms.size() != e->args.size()) return pool_.rsum(e->real, std::move(terms));
    return e;
}

Expr Interior::product(Expr e) {
    // (1 + x exp(a))^-1 is sigmoid(-a - log x)
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const Expr b = e->args[k];
        if (e->num[k] != -1 || e->den[k] != 1 || b->kind != Kind::Sum || b->real != 1 || b->args.size() != 1) continue;
        Factors f = factors(b->args[0]);
        f.coefficient *= b->rcoef[0];
        if (f.exponent.empty() || f.coefficient <= 0 ||
            !std::all_of(f.factors.begin(), f.factors.end(), [&](const auto& x) { return positive(x.first); }))
            continue;
        double constant = -std::log(f.coefficient);
        std::vector<std::pair<double, Expr>> terms;
        for (const auto& [t, c] : f.exponent) {
            if (t)
                terms.emplace_back(-c, t);
            else
                constant -= c;
        }
        for (const auto& [x, p] : f.factors)
            terms.emplace_back(-static_cast<double>(p.num) / static_cast<double>(p.den), pool_.apply(Op::Log, x));
        std::vector<ExprPool::Power> rest{{pool_.apply(Op::Sigmoid, pool_.rsum(constant, std::move(terms))), 1, 1}};
        for (std::size_t m = 0; m < e->args.size(); ++m)
            if (m != k) rest.push_back({e->args[m], e->num[m], e->den[m]});
        return pool_.product(Type::Real, std::move(rest));
    }
    return build(factors(e));
}

Expr Interior::comparison(Expr e) {
    if (e->args.size() != 2) return e;
    if (e->op == Op::Eq && e->args[0] == e->args[1]) return pool_.boolean(true); // no NaN here
    // Scores and row statistics are finite; a captured tensor may hold -inf.
    if (reads_captured(e->args[0]) || reads_captured(e->args[1])) return e;
    for (const Expr x : e->args) // a mask is looked through first
        if (x->kind == Kind::Select && (is_const(x->args[1]) || is_const(x->args[2]))) return e;
    const Expr a = e->args[0], b = e->args[1];
    const auto infinite = [](Expr x) { return is_const(x) && std::isinf(x->real); };
    if (e->op == Op::Eq && infinite(a) != infinite(b)) return pool_.boolean(false);
    if (infinite(b) && !is_const(a)) return pool_.boolean(b->real > 0); // x < inf
    if (infinite(a) && !is_const(b)) return pool_.boolean(a->real < 0);
    if (is_const(b) && b->real == 0 && positive(a)) return pool_.boolean(false); // l == 0, l <= 0, l < 0
    if (is_const(a) && a->real == 0 && positive(b)) return pool_.boolean(e->op != Op::Eq);
    return e;
}

Expr Interior::step(Expr e) {
    const auto counts_keys = [](Expr r) {
        return r->args[1]->kind != Kind::Dim || !dims::is_input(r->args[1]->number);
    };
    if (e->kind == Kind::Reduce && e->reduce == ReduceOp::Any && !is_false(e->args[0]) && counts_keys(e))
        return pool_.boolean(true); // some key is kept
    if (e->kind == Kind::Reduce && e->reduce == ReduceOp::All && !is_true(e->args[0]) && counts_keys(e))
        return pool_.boolean(false);
    if (e->kind == Kind::Cmp && e->args[0]->type == Type::Real) {
        const Expr c = comparison(e);
        return c == e ? lift(e) : c;
    }
    if (e->type != Type::Real) return e;
    Expr r = e;
    switch (e->kind) {
    case Kind::Sum: r = sum(e); break;
    case Kind::Product: r = product(e); break;
    case Kind::Max: // clamp_min(l, 1e-38)
        if (is_const(e->args.back()) && e->args.back()->real > 0 && e->args.back()->real < 1e-30 &&
            e->args.size() == 2 && positive(e->args[0]))
            return e->args[0];
        break;
    case Kind::Fn: {
        const Expr x = e->args[0];
        if (e->op == Op::Exp2) return step(pool_.apply(Op::Exp, pool_.rsum(0, {{0.69314718055994530942, x}})));
        if (e->op == Op::Exp && x->kind == Kind::Sum &&
            std::any_of(x->args.begin(), x->args.end(), [](Expr t) { return t->kind == Kind::Fn && t->op == Op::Log; }))
            r = build(factors(e));
        if (e->op == Op::Log) { // log(exp(a) x) is a + log(x)
            Factors f = factors(x);
            if (!f.exponent.empty()) {
                double constant = 0;
                std::vector<std::pair<double, Expr>> terms;
                for (const auto& [t, c] : f.exponent) {
                    if (t)
                        terms.emplace_back(c, t);
                    else
                        constant = c;
                }
                f.exponent.clear();
                const Expr rest = build(f);
                terms.emplace_back(1.0, pool_.apply(Op::Log, rest));
                return pool_.rsum(constant, std::move(terms));
            }
        }
        break;
    }
    case Kind::Select:
        // Select(c1, Select(c2, A, K), K) is Select(c1 and c2, A, K)
        if (is_const(e->args[2]) && e->args[1]->kind == Kind::Select && e->args[1]->args[2] == e->args[2])
            return pool_.select(pool_.logical_and(e->args[0], e->args[1]->args[0]), e->args[1]->args[1], e->args[2]);
        if (is_const(e->args[2]) && e->args[1]->kind == Kind::Select && e->args[1]->args[1] == e->args[2])
            return pool_.select(pool_.logical_and(e->args[0], pool_.logical_not(e->args[1]->args[0])),
                                e->args[1]->args[2], e->args[2]);
        if (is_const(e->args[1]) && e->args[2]->kind == Kind::Select &&
            (e->args[2]->args[1] == e->args[1] ||
             e->args[2]->args[2] ==
                 e->args[1])) { // not by turning it round: a select whose condition is a Not turns back
            const Expr inner = e->args[2], k = e->args[1], c = pool_.logical_not(e->args[0]);
            if (inner->args[2] == k) return pool_.select(pool_.logical_and(c, inner->args[0]), inner->args[1], k);
            return pool_.select(pool_.logical_and(c, pool_.logical_not(inner->args[0])), inner->args[2], k);
        }
        if (e->args[0]->kind == Kind::Cmp && e->args[0]->args.size() == 2 &&
            e->args[0]->op != Op::Eq) { // x < 0 ? 0 : x
            const Expr lo = e->args[0]->args[0], hi = e->args[0]->args[1];
            if (lo->type == Type::Real && e->args[1] == hi && e->args[2] == lo) return pool_.apply(Op::Max, lo, hi);
            if (lo->type == Type::Real && e->args[1] == lo && e->args[2] == hi) return pool_.apply(Op::Min, lo, hi);
        }
        return e;
    default: break;
    }
    if (r->kind == Kind::Sum || r->kind == Kind::Product || r->kind == Kind::Fn || r->kind == Kind::Max ||
        r->kind == Kind::Min)
        return lift(r);
    return r;
}

Expr Interior::simplify(Expr e) {
    for (int n = 0; n < kRounds; ++n) {
        const Expr next = pool_.rewrite(e, [&](Expr x) { return step(x); });
        if (next == e) break;
        e = next;
    }
    return e;
}

} // namespace cubridge::ir::variant
