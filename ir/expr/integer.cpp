// Integers in polynomial normal form: sums of coefficient x monomial. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/expr/build.h"
#include <algorithm>
#include <numeric>

namespace cubridge::ir {

namespace {

[[noreturn]] void overflow() {
    fail("limit", "an integer constant does not fit 64 bits", {}, "use smaller constants");
}

std::int64_t times(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_mul_overflow(a, b, &r) || r == INT64_MIN) overflow(); // so that any coefficient can be negated
    return r;
}

std::int64_t plus(std::int64_t a, std::int64_t b) {
    std::int64_t r = 0;
    if (__builtin_add_overflow(a, b, &r) || r == INT64_MIN) overflow();
    return r;
}

constexpr std::size_t kMaxTerms = 64; // beyond it a product of sums stays a product

} // namespace

IntSum as_sum(Expr e) {
    IntSum s;
    if (is_const(e)) {
        s.constant = e->integer;
    } else if (e->kind == Kind::Sum) {
        s.constant = e->integer;
        for (std::size_t k = 0; k < e->args.size(); ++k) s.terms.emplace_back(e->icoef[k], e->args[k]);
    } else {
        s.terms.emplace_back(1, e);
    }
    return s;
}

Expr ExprPool::isum(std::int64_t constant, std::vector<std::pair<std::int64_t, Expr>> terms) {
    std::vector<std::pair<std::int64_t, Expr>> flat;
    for (const auto& [c, e] : terms) {
        const IntSum s = as_sum(e);
        constant = plus(constant, times(c, s.constant));
        for (const auto& [d, t] : s.terms) flat.emplace_back(times(c, d), t);
    }
    meter_.spend(flat.size());
    std::sort(flat.begin(), flat.end(), [](const auto& a, const auto& b) { return a.second->id < b.second->id; });
    ExprNode n{.kind = Kind::Sum, .type = Type::Int};
    n.integer = constant;
    for (std::size_t k = 0; k < flat.size();) {
        std::int64_t c = 0;
        const Expr e = flat[k].second;
        for (; k < flat.size() && flat[k].second == e; ++k) c = plus(c, flat[k].first);
        if (c == 0) continue;
        n.args.push_back(e);
        n.icoef.push_back(c);
    }
    for (std::size_t k = 0; k < n.args.size(); ++k) { // (x // n) * n + x % n is x
        const Expr e = n.args[k];
        const std::int64_t c = n.icoef[k];
        if (e->kind != Kind::Mod) continue;
        const IntSum whole =
            as_sum(detail::int_mul(*this, detail::int_floor_div(*this, e->args[0], e->args[1]), e->args[1]));
        if (whole.constant != 0 || whole.terms.size() != 1) continue;
        const std::int64_t wanted = times(c, whole.terms[0].first);
        const auto it = std::find(n.args.begin(), n.args.end(), whole.terms[0].second);
        if (it == n.args.end() || n.icoef[static_cast<std::size_t>(it - n.args.begin())] != wanted) continue;
        std::vector<std::pair<std::int64_t, Expr>> rest{{c, e->args[0]}};
        for (std::size_t o = 0; o < n.args.size(); ++o)
            if (n.args[o] != e && n.args[o] != *it) rest.emplace_back(n.icoef[o], n.args[o]);
        return isum(constant, std::move(rest));
    }
    if (n.args.empty()) return integer(constant);
    for (std::size_t k = 0; k < n.args.size(); ++k) { // -min(a, b) is max(-a, -b); after like terms have cancelled
        const Expr m = n.args[k];
        if (n.icoef[k] >= 0 || (m->kind != Kind::Min && m->kind != Kind::Max)) continue;
        std::vector<Expr> negated;
        for (const Expr a : m->args) negated.push_back(isum(0, {{-1, a}}));
        std::vector<std::pair<std::int64_t, Expr>> again;
        for (std::size_t o = 0; o < n.args.size(); ++o)
            if (o != k) again.emplace_back(n.icoef[o], n.args[o]);
        again.emplace_back(-n.icoef[k], extremum(m->kind == Kind::Min ? Kind::Max : Kind::Min, std::move(negated)));
        return isum(constant, std::move(again));
    }
    if (n.args.size() == 1 && n.icoef[0] == 1 && constant == 0) return n.args[0];
    return intern(std::move(n));
}

namespace detail {

Expr int_mul(ExprPool& p, Expr a, Expr b) {
    if (is_const(a)) std::swap(a, b);
    if (is_const(b)) return p.isum(0, {{b->integer, a}});
    const IntSum x = as_sum(a), y = as_sum(b);
    const bool small = (x.terms.size() + 1) * (y.terms.size() + 1) <= kMaxTerms;
    if (small && (a->kind == Kind::Sum || b->kind == Kind::Sum)) {
        std::vector<std::pair<std::int64_t, Expr>> terms;
        for (const auto& [c, e] : x.terms) {
            for (const auto& [d, f] : y.terms) terms.emplace_back(times(c, d), int_mul(p, e, f));
            if (y.constant != 0) terms.emplace_back(times(c, y.constant), e);
        }
        for (const auto& [d, f] : y.terms)
            if (x.constant != 0) terms.emplace_back(times(d, x.constant), f);
        return p.isum(times(x.constant, y.constant), std::move(terms));
    }
    return p.product(Type::Int, {{a, 1, 1}, {b, 1, 1}}, false);
}

bool is_dim(Expr e, int number) {
    return e->kind == Kind::Dim && e->number == number;
}

bool is_group(Expr e) { // Hq // Hk: exact, since a request has a whole number of query heads per KV head
    return e->kind == Kind::FloorDiv && is_dim(e->args[0], dims::Hq) && is_dim(e->args[1], dims::Hk);
}

// Reads no position and nothing captured, which may be 0: sizes only.
bool is_of_sizes(Expr e) {
    return e->free == 0 && e->kind != Kind::Load && e->kind != Kind::Arg &&
           e->depth <= 8 && // so that shared parts are not walked for ever
           std::all_of(e->args.begin(), e->args.end(), [](Expr a) { return is_of_sizes(a); });
}

// e / by where it is exact for every value of the atoms, else null. A divisor that may be 0 cancels nothing.
Expr divide_exactly(ExprPool& p, Expr e, Expr by) {
    if (!is_of_sizes(by)) return nullptr;
    if (e == by) return p.integer(1);
    if (is_dim(e, dims::Hq) && is_dim(by, dims::Hk)) return build(p, Kind::FloorDiv, e, by);
    if (is_dim(e, dims::Hq) && is_group(by)) return p.dim(dims::Hk);
    if (e->kind == Kind::Product) {
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const Expr q = divide_exactly(p, e->args[k], by);
            if (!q) continue;
            std::vector<ExprPool::Power> rest;
            for (std::size_t m = 0; m < e->args.size(); ++m) {
                const std::int64_t power = e->num[m] - (m == k ? 1 : 0);
                if (power > 0) rest.push_back({e->args[m], power, 1});
            }
            rest.push_back({q, 1, 1});
            return p.product(Type::Int, std::move(rest));
        }
    }
    if (by->kind == Kind::Product) { // one factor after another
        Expr at = e;
        for (std::size_t k = 0; k < by->args.size(); ++k)
            for (std::int64_t n = 0; n < by->num[k] && at; ++n) at = divide_exactly(p, at, by->args[k]);
        return at;
    }
    return nullptr;
}

Expr int_floor_div(ExprPool& p, Expr a, Expr b) {
    if (is_const(a) && is_const(b)) return p.integer(floor_div(a->integer, b->integer));
    if (is_int(b, 1)) return a;
    if (is_int(a, 0)) return a;
    const IntSum s = as_sum(a);
    std::vector<std::pair<std::int64_t, Expr>> whole, rest;
    if (is_const(b)) {
        const std::int64_t c = b->integer;
        if (c <= 0) return build(p, Kind::FloorDiv, a, b);
        for (const auto& [k, e] : s.terms) (k % c == 0 ? whole : rest).emplace_back(k % c == 0 ? k / c : k, e);
        const std::int64_t up = floor_div(s.constant, c);
        std::int64_t left = s.constant - up * c, g = c;
        if (rest.empty()) return p.isum(up, std::move(whole));
        for (const auto& [k, e] : rest) g = std::gcd(g, k);
        if (g > 1) { // floor((g x + r) / (g c)) = floor((x + floor(r / g)) / c)
            for (auto& [k, e] : rest) k /= g;
            left = floor_div(left, g);
        }
        const Expr inner = p.isum(left, std::move(rest));
        const std::int64_t divisor = c / g;
        Expr q = nullptr;
        if (divisor == 1)
            q = inner;
        else if (inner->kind == Kind::FloorDiv && is_const(inner->args[1]) && inner->args[1]->integer > 0)
            q = build(p, Kind::FloorDiv, inner->args[0], p.integer(times(inner->args[1]->integer, divisor)));
        else
            q = build(p, Kind::FloorDiv, inner, p.integer(divisor));
        whole.emplace_back(1, q);
        return p.isum(up, std::move(whole));
    }
    for (const auto& [k, e] : s.terms) {
        const Expr q = divide_exactly(p, e, b);
        if (q)
            whole.emplace_back(k, q);
        else
            rest.emplace_back(k, e);
    }
    if (whole.empty()) return build(p, Kind::FloorDiv, a, b);
    if (!(rest.empty() && s.constant == 0))
        whole.emplace_back(1, build(p, Kind::FloorDiv, p.isum(s.constant, std::move(rest)), b));
    return p.isum(0, std::move(whole));
}

Expr int_mod(ExprPool& p, Expr a, Expr b) {
    if (is_const(a) && is_const(b)) return p.integer(floor_mod(a->integer, b->integer));
    if (is_int(b, 1) || is_int(a, 0)) return p.integer(0);
    IntSum s = as_sum(a);
    std::vector<std::pair<std::int64_t, Expr>> rest;
    if (is_const(b)) {
        const std::int64_t c = b->integer;
        if (c <= 0) return build(p, Kind::Mod, a, b);
        for (const auto& [k, e] : s.terms) {
            std::int64_t r = floor_mod(k, c);
            if (r > c / 2) r -= c; // the representative nearest to 0: -1 stays -1
            if (r != 0) rest.emplace_back(r, e);
        }
        const Expr inner = p.isum(floor_mod(s.constant, c), std::move(rest));
        return is_const(inner) ? inner : build(p, Kind::Mod, inner, b);
    }
    for (const auto& [k, e] : s.terms)
        if (!divide_exactly(p, e, b)) rest.emplace_back(k, e);
    if (rest.empty() && s.constant == 0) return p.integer(0);
    return build(p, Kind::Mod, p.isum(s.constant, std::move(rest)), b);
}

namespace {

// One form for what // and % say in comparisons; null where there is nothing of the kind.
Expr compare_periods(ExprPool& p, Op op, const IntSum& s) {
    const auto is_mod = [&](std::size_t k) { return s.terms[k].second->kind == Kind::Mod; };
    if (op == Op::Eq && s.constant == 0 && s.terms.size() == 2 && is_mod(0) && is_mod(1) &&
        s.terms[0].first == -s.terms[1].first &&
        s.terms[0].second->args[1] == s.terms[1].second->args[1]) // a % n == b % n is (a - b) % n == 0
        return int_compare(
            p, op,
            int_mod(p, p.sub(s.terms[0].second->args[0], s.terms[1].second->args[0]), s.terms[0].second->args[1]));
    if (op == Op::Eq && s.constant == 0 && s.terms.size() == 1 && is_mod(0)) { // (a - b) % n == 0 is (b - a) % n == 0
        const Expr m = s.terms[0].second;
        const IntSum x = as_sum(m->args[0]);
        const auto before = [](const auto& a, const auto& b) {
            return std::pair(a.second->kind, a.second->number) < std::pair(b.second->kind, b.second->number);
        };
        if (x.terms.empty() || std::min_element(x.terms.begin(), x.terms.end(), before)->first > 0) return nullptr;
        const Expr turned = int_mod(p, p.isum(0, {{-1, m->args[0]}}), m->args[1]);
        if (turned->kind != Kind::Mod) return int_compare(p, op, turned);
        const IntSum y = as_sum(turned->args[0]); // -2 is 2 modulo 4: it must have turned
        if (turned == m || y.terms.empty() || std::min_element(y.terms.begin(), y.terms.end(), before)->first < 0)
            return nullptr;
        return build_compare(p, op, turned, nullptr);
    }
    if (op == Op::Le && s.terms.size() == 2) // x < (q + 1) n is x // n <= q, where q is itself a // n
        for (const std::size_t k : {std::size_t{0}, std::size_t{1}}) {
            const auto [c, q] = s.terms[k];
            const auto [d, x] = s.terms[1 - k];
            if (q->kind != Kind::FloorDiv || !is_const(q->args[1]) || q->args[1]->integer <= 1) continue;
            const std::int64_t n = q->args[1]->integer;
            if (std::abs(d) != 1 || c != -d * n) continue;
            // d x - d n q + k <= 0
            const std::int64_t low = d > 0 ? s.constant + n - 1 : s.constant;
            if (low % n != 0) continue;
            return int_compare(p, op, p.isum(low / n, {{d, int_floor_div(p, x, p.integer(n))}, {-d, q}}));
        }
    return nullptr;
}

} // namespace

// Sum of c x + k OP 0 with the common divisor of the coefficients taken out.
Expr int_compare(ExprPool& p, Op op, Expr e) {
    if (is_const(e)) return p.boolean(op == Op::Le ? e->integer <= 0 : e->integer == 0);
    IntSum s = as_sum(e);
    if (op == Op::Le)
        for (const auto& [c, m] : s.terms) { // max(a, b) + k <= 0 is (a + k <= 0 and b + k <= 0), and so on
            if (m->kind != Kind::Max && m->kind != Kind::Min) continue;
            std::vector<Expr> parts;
            for (const Expr x : m->args) parts.push_back(int_compare(p, Op::Le, p.isum(0, {{1, e}, {-c, m}, {c, x}})));
            return (m->kind == Kind::Max) == (c > 0) ? p.logical_and(std::move(parts)) : p.logical_or(std::move(parts));
        }
    if (s.terms.size() == 1) { // of a truth value, or of a choice between constants
        const auto [c, t] = s.terms[0];
        const auto holds = [&, &c = c](std::int64_t v) {
            return p.boolean(op == Op::Le ? plus(times(c, v), s.constant) <= 0 : plus(times(c, v), s.constant) == 0);
        };
        if (t->kind == Kind::Cast && t->args[0]->type == Type::Bool) return p.select(t->args[0], holds(1), holds(0));
        if (t->kind == Kind::Select && is_const(t->args[1]) && is_const(t->args[2]))
            return p.select(t->args[0], holds(t->args[1]->integer), holds(t->args[2]->integer));
    }
    if (const Expr r = compare_periods(p, op, s)) return r;
    std::int64_t g = 0;
    for (const auto& [k, x] : s.terms) g = std::gcd(g, k);
    if (op == Op::Eq && s.constant % g != 0) return p.boolean(false);
    const std::int64_t sign = op == Op::Eq && s.terms[0].first < 0 ? -1 : 1;
    for (auto& [k, x] : s.terms) k = k / g * sign;
    const std::int64_t constant = op == Op::Eq ? s.constant / g * sign : -floor_div(times(-1, s.constant), g);
    return build_compare(p, op, p.isum(constant, std::move(s.terms)), nullptr);
}

} // namespace detail

Expr ExprPool::extremum(Kind kind, std::vector<Expr> x) {
    const Type type = x.at(0)->type;
    std::vector<Expr> flat;
    for (const Expr e : x) {
        if (e->kind == kind)
            flat.insert(flat.end(), e->args.begin(), e->args.end());
        else
            flat.push_back(e);
    }
    meter_.spend(flat.size());
    const auto better = [kind](double a, double b) { return kind == Kind::Max ? a > b : a < b; };
    std::vector<Expr> kept;
    Expr constant = nullptr;
    for (const Expr e : flat) {
        if (is_const(e)) {
            const auto value = [](Expr c) { return c->type == Type::Int ? static_cast<double>(c->integer) : c->real; };
            if (type == Type::Real && e->real != e->real) return e;
            if (!constant || better(value(e), value(constant))) constant = e;
            continue;
        }
        bool drop = false;
        for (auto& k : kept) {
            if (k == e) drop = true;
            if (type != Type::Int || drop) continue;
            const Expr d = sub(e, k); // a constant distance decides for ever
            if (!is_const(d)) continue;
            drop = true;
            if (better(static_cast<double>(d->integer), 0)) k = e;
        }
        if (!drop) kept.push_back(e);
    }
    std::sort(kept.begin(), kept.end(), [](Expr a, Expr b) { return a->id < b->id; });
    kept.erase(std::unique(kept.begin(), kept.end()), kept.end());
    if (constant) kept.push_back(constant);
    if (kept.size() == 1) return kept[0];
    ExprNode n{.kind = kind, .type = type};
    n.args = std::move(kept);
    return intern(std::move(n));
}

} // namespace cubridge::ir
