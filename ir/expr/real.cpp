// Reals: flattened sums and products, constants folded in double; nothing is cancelled that could be inf or NaN.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/expr/build.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace cubridge::ir {

namespace {

constexpr std::int64_t kMaxPower = std::int64_t{1} << 20; // products of three of them fit 64 bits

bool finite_integer(double v) {
    return std::floor(v) == v && std::fabs(v) < 2147483648.0;
}
bool is_int_cast(Expr e) {
    return e->kind == Kind::Cast && e->type == Type::Real && e->args[0]->type == Type::Int;
}

// A size that is never 0 in a request, cast to Real: exponents of it may cancel.
bool is_positive_size(Expr e) {
    if (!is_int_cast(e) || e->args[0]->kind != Kind::Dim) return false;
    const int n = e->args[0]->number;
    return n == dims::D || n == dims::Dv || n == dims::Hq || n == dims::Hk;
}

} // namespace

Expr ExprPool::rsum(double constant, std::vector<std::pair<double, Expr>> terms) {
    std::vector<std::pair<double, Expr>> flat;
    const auto push = [&](double c, Expr e) {
        if (is_const(e))
            constant += c * e->real;
        else
            flat.emplace_back(c, e);
    };
    const auto distributes = [](double c, Expr e) { // a product of finite numbers that is none would meet another one
        const auto overflows = [c](double x) { return std::isfinite(x) && !std::isfinite(c * x); };
        return std::isfinite(c) && c != 0 && !overflows(e->real) &&
               std::none_of(e->rcoef.begin(), e->rcoef.end(), overflows);
    };
    for (const auto& [c, e] : terms) {
        if (e->kind == Kind::Sum && distributes(c, e)) {
            constant += c * e->real;
            for (std::size_t k = 0; k < e->args.size(); ++k) push(c * e->rcoef[k], e->args[k]);
        } else {
            push(c, e);
        }
    }
    meter_.spend(flat.size());
    // Integers that were cast add up exactly: one cast of their sum, the constant with it where it is whole.
    std::vector<std::pair<std::int64_t, Expr>> whole;
    std::vector<std::pair<double, Expr>> rest;
    for (const auto& [c, e] : flat) {
        if (is_int_cast(e) && finite_integer(c))
            whole.emplace_back(static_cast<std::int64_t>(c), e->args[0]);
        else
            rest.emplace_back(c, e);
    }
    if (!whole.empty()) {
        if (finite_integer(constant)) {
            const Expr sum = isum(static_cast<std::int64_t>(constant), whole);
            constant = is_const(sum) ? static_cast<double>(sum->integer) : 0;
            if (!is_const(sum)) {
                // c * cast(x) keeps its coefficient outside, so that 2 * cast(x) is one form
                std::int64_t g = 0;
                const IntSum s = as_sum(sum);
                for (const auto& [k, t] : s.terms) g = std::gcd(g, k);
                g = std::gcd(g, s.constant);
                if (s.terms[0].first < 0 && s.terms.size() == 1) g = -g;
                std::vector<std::pair<std::int64_t, Expr>> reduced;
                for (const auto& [k, t] : s.terms) reduced.emplace_back(k / g, t);
                rest.emplace_back(static_cast<double>(g), cast(Type::Real, isum(s.constant / g, reduced)));
            }
        } else {
            const Expr sum = isum(0, whole);
            if (is_const(sum))
                constant += static_cast<double>(sum->integer);
            else
                rest.emplace_back(1.0, cast(Type::Real, sum));
        }
    }
    std::stable_sort(rest.begin(), rest.end(),
                     [](const auto& a, const auto& b) { return a.second->id < b.second->id; });
    ExprNode n{.kind = Kind::Sum, .type = Type::Real};
    n.real = constant != constant ? __builtin_nan("") : constant;
    for (const auto& [c, e] : rest) {
        // x + x is 2 x; x - x is not 0 (inf), so coefficients of unlike sign stay apart
        if (!n.args.empty() && n.args.back() == e && (n.rcoef.back() > 0) == (c > 0) && c != 0)
            n.rcoef.back() += c;
        else {
            n.args.push_back(e);
            n.rcoef.push_back(c);
        }
    }
    if (n.args.empty()) return real(constant);
    if (n.real == 0) n.real = 0; // no negative zero
    if (n.args.size() == 1 && n.rcoef[0] == 1 && n.real == 0) return n.args[0];
    return intern(std::move(n));
}

Expr ExprPool::product(Type type, std::vector<Power> factors, bool distribute) {
    double coefficient = 1;
    std::int64_t whole = 1;
    std::vector<Power> flat;
    const auto check = [](std::int64_t n) { // powers of powers
        if (n > kMaxPower || n < -kMaxPower) fail("limit", "a power is too large", {}, "use smaller powers");
    };
    const auto push = [&](auto&& self, Power f) -> void {
        if (f.num == 0) return;
        check(f.num), check(f.den);
        const std::int64_t g = std::gcd(f.num, f.den);
        f.num /= g, f.den /= g;
        const Expr e = f.base;
        if (type == Type::Int) {
            if (is_const(e)) {
                // 0, 1 and -1 go round, all others end at 64 bits
                for (std::int64_t k = 0; k < (f.num > 64 ? 64 + f.num % 2 : f.num); ++k)
                    if (__builtin_mul_overflow(whole, e->integer, &whole))
                        fail("limit", "an integer constant does not fit 64 bits", {}, "use smaller constants");
            } else if (e->kind == Kind::Product) {
                for (std::size_t k = 0; k < e->args.size(); ++k) self(self, {e->args[k], e->num[k] * f.num, 1});
            } else {
                flat.push_back(f);
            }
            return;
        }
        const double p = static_cast<double>(f.num) / static_cast<double>(f.den);
        if (is_const(e)) {
            coefficient *= p == 1     ? e->real
                           : p == -1  ? 1 / e->real
                           : p == 0.5 ? std::sqrt(e->real)
                                      : std::pow(e->real, p);
        } else if (e->kind == Kind::Sum && e->args.size() == 1 && e->real == 0 && (e->rcoef[0] > 0 || f.den == 1)) {
            const double scale = p == 1 ? e->rcoef[0] : std::pow(e->rcoef[0], p);
            if (std::isfinite(scale) && std::isfinite(coefficient) && !std::isfinite(scale * coefficient)) {
                flat.push_back(f); // 1e300 * (1e300 * x) is 0 where x is, inf * x is not
                return;
            }
            coefficient *= scale;
            self(self, {e->args[0], f.num, f.den});
        } else if (e->kind == Kind::Product) {
            // (x^2)^(1/2) is |x|, (x^3)^(1/3) and (x^(1/2))^2 are no numbers where x is negative, and (x y)^(1/2) is
            // one where both are: these keep their bracket
            for (std::size_t k = 0; k < e->args.size(); ++k) {
                if (is_positive_size(e->args[k]) || (f.den == 1 && e->den[k] == 1)) continue;
                const bool whole = (e->num[k] * f.num) % (e->den[k] * f.den) == 0;
                if (whole || (f.den != 1 && (e->args.size() > 1 || (e->den[k] == 1 && e->num[k] % 2 == 0)))) {
                    flat.push_back(f);
                    return;
                }
            }
            for (std::size_t k = 0; k < e->args.size(); ++k)
                self(self, {e->args[k], e->num[k] * f.num, e->den[k] * f.den});
        } else {
            flat.push_back(f);
        }
    };
    std::stable_partition(factors.begin(), factors.end(), [](const Power& f) { return is_const(f.base); });
    for (const Power& f : factors) push(push, f);
    meter_.spend(flat.size());
    if (type == Type::Int && distribute &&
        std::any_of(flat.begin(), flat.end(), [](const Power& f) { return f.base->kind == Kind::Sum; })) {
        Expr r = integer(whole); // a sum came in: distribute as int_mul does
        for (const Power& f : flat)
            for (std::int64_t k = 0; k < f.num; ++k) r = detail::int_mul(*this, r, f.base);
        if (r->kind != Kind::Product) return r;
        return r;
    }
    // s / t * t and s * t / t are one form: where one is no number, so is the other
    std::stable_sort(flat.begin(), flat.end(), [](const Power& a, const Power& b) {
        return std::pair(a.base->id, a.num < 0) < std::pair(b.base->id, b.num < 0);
    });
    ExprNode n{.kind = Kind::Product, .type = type};
    for (const Power& f : flat) {
        if (!n.args.empty() && n.args.back() == f.base) {
            const std::int64_t num = n.num.back() * f.den + f.num * n.den.back(), den = n.den.back() * f.den;
            const bool like = (n.num.back() > 0) == (f.num > 0);
            // x^(1/2) x^(1/2) is no number where x is negative
            const bool roots = (f.den != 1 || n.den.back() != 1) && num % den == 0;
            if (type == Type::Int || (like && !roots) || is_positive_size(f.base)) {
                const std::int64_t g = num == 0 ? 1 : std::gcd(num, den);
                n.num.back() = num / g, n.den.back() = den / g;
                check(n.num.back()), check(n.den.back());
                if (num == 0) n.args.pop_back(), n.num.pop_back(), n.den.pop_back();
                continue;
            }
        }
        n.args.push_back(f.base);
        n.num.push_back(f.num);
        n.den.push_back(f.den);
    }
    if (type == Type::Int) {
        for (std::size_t g = 0; g < n.args.size(); ++g) { // Hk * (Hq // Hk) is Hq
            if (!detail::is_group(n.args[g])) continue;
            for (std::size_t k = 0; k < n.args.size(); ++k) {
                if (!detail::is_dim(n.args[k], dims::Hk)) continue;
                std::vector<Power> again;
                for (std::size_t m = 0; m < n.args.size(); ++m)
                    again.push_back({n.args[m], n.num[m] - (m == g || m == k ? 1 : 0), 1});
                again.push_back({dim(dims::Hq), 1, 1});
                again.push_back({integer(whole), 1, 1});
                return product(Type::Int, std::move(again), distribute);
            }
        }
        if (n.args.empty()) return integer(whole);
        const Expr m = n.args.size() == 1 && n.num[0] == 1 ? n.args[0] : intern(std::move(n));
        return whole == 1 ? m : isum(0, {{whole, m}});
    }
    if (n.args.empty()) return real(coefficient);
    Expr m = nullptr;
    if (n.args.size() == 1 && n.num[0] == 1 && n.den[0] == 1) {
        m = n.args[0];
    } else if (n.args.size() == 1 && n.num[0] == -1 && n.den[0] == 1 && n.args[0]->kind == Kind::Sum &&
               n.args[0]->args.size() == 1 && n.args[0]->rcoef[0] == 1 && n.args[0]->real == 1 &&
               n.args[0]->args[0]->kind == Kind::Fn && n.args[0]->args[0]->op == Op::Exp) {
        m = detail::real_fn(*this, Op::Sigmoid, rsum(0, {{-1.0, n.args[0]->args[0]->args[0]}})); // 1 / (1 + exp(-x))
    } else {
        m = intern(std::move(n));
    }
    return coefficient == 1 ? m : rsum(0, {{coefficient, m}});
}

namespace detail {

Expr int_pow(ExprPool& p, Expr a, Expr b) {
    if (!is_const(b) || b->integer < 0 || b->integer > 16)
        fail("unsupported", "an integer can be raised to a constant power from 0 to 16 only", {}, "use a float base");
    Expr r = p.integer(1);
    for (std::int64_t k = 0; k < b->integer; ++k) r = int_mul(p, r, a);
    return r;
}

Expr real_pow(ExprPool& p, Expr a, Expr b) {
    if (is_const(a) && is_const(b)) return p.real(std::pow(a->real, b->real));
    if (is_const(b)) {
        for (const std::int64_t den : {1, 2, 3, 4, 6, 8}) {
            const double num = b->real * static_cast<double>(den);
            if (finite_integer(num) && std::fabs(num) <= 64)
                return num == 0 ? p.real(1) : p.product(Type::Real, {{a, static_cast<std::int64_t>(num), den}});
        }
    }
    const Expr x[] = {a, b};
    return build_fn(p, Kind::Fn, Op::Pow, x);
}

Expr real_fn(ExprPool& p, Op op, Expr x) {
    if (is_const(x)) return p.real(info(op).real(&x->real));
    if ((op == Op::Floor || op == Op::Ceil || op == Op::Trunc || op == Op::Round) && is_int_cast(x)) return x;
    if (op == Op::Abs && is_int_cast(x)) return p.cast(Type::Real, p.apply(Op::Abs, x->args[0]));
    return build_fn(p, Kind::Fn, op, {&x, 1});
}

} // namespace detail
} // namespace cubridge::ir
