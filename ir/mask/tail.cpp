// Two questions about a function of u that are asked of its parts: from where on is it one value, and from where on is
// it at least so much? SPDX-License-Identifier: Apache-2.0
#include "ir/mask/tail.h"
#include "ir/expr/build.h"
#include "ir/mask/sign.h"
#include <unordered_map>

namespace cubridge::ir::mask {

namespace {

constexpr std::int64_t kNever = std::int64_t{1} << 30; // beyond all distances
constexpr int kQuestions = 4000;                       // parts are shared, and asked for once each time they stand
constexpr double kRoom = 1.0001;                       // for the roundings of float32, here and in the text

class Settle {
public:
    Settle(ExprPool& pool, int variable) : p_(pool), u_(index_bit(variable)) {}

    std::optional<Tail> settle(Expr e) {
        if (!on(e)) return Tail{nullptr, e};
        if (const auto it = done_.find(e); it != done_.end()) return it->second;
        const auto r = make(e);
        done_.emplace(e, r);
        return r;
    }

private:
    using From = std::optional<Expr>; // null: everywhere; nothing: not known

    bool on(Expr e) const { return (e->free & u_) != 0; }
    Expr join(Expr a, Expr b) { return !a ? b : !b ? a : p_.extremum(Kind::Max, {a, b}); }
    Expr negated(Expr e) { return p_.isum(0, {{-1, e}}); }

    std::optional<Tail> make(Expr e) {
        switch (e->kind) {
        case Kind::Index:
        case Kind::Bound:
        case Kind::Reduce: return std::nullopt;
        case Kind::Min:
        case Kind::Max: return bounded(e);
        case Kind::Select: {
            const auto c = settle(e->args[0]);
            if (!c) return std::nullopt;
            if (!is_const(c->value)) return parts(e);
            const auto chosen = settle(e->args[is_true(c->value) ? 1 : 2]);
            if (!chosen) return std::nullopt;
            return Tail{join(c->from, chosen->from), chosen->value};
        }
        case Kind::And:
        case Kind::Or: {
            const bool decides = e->kind == Kind::Or;
            for (const Expr a : e->args)
                if (const auto t = settle(a); t && t->value == p_.boolean(decides)) return t;
            return parts(e);
        }
        case Kind::Cmp: {
            if (const auto t = parts(e)) return t;
            if (e->args.size() != 1) return std::nullopt;
            if (const From r = reach(e->args[0], 1, p_.integer(1))) return Tail{*r, p_.boolean(false)};
            const bool order = e->op == Op::Le;
            if (const From r = reach(e->args[0], -1, p_.integer(order ? 0 : 1))) return Tail{*r, p_.boolean(order)};
            return std::nullopt;
        }
        default: return parts(e);
        }
    }

    std::optional<Tail> parts(Expr e) {
        Tail out;
        std::vector<Expr> args;
        for (const Expr a : e->args) {
            const auto t = settle(a);
            if (!t) return std::nullopt;
            out.from = join(out.from, t->from);
            args.push_back(t->value);
        }
        out.value = p_.with_args(e, std::move(args));
        return out;
    }

    /// min(x, k) is k once x is at least that.
    std::optional<Tail> bounded(Expr e) {
        Tail out;
        std::vector<Expr> bounds, open;
        for (const Expr a : e->args) {
            const auto t = settle(a);
            if (t) out.from = join(out.from, t->from);
            (t ? bounds : open).push_back(t ? t->value : a);
        }
        if (bounds.empty() || (!open.empty() && e->type != Type::Int)) return std::nullopt;
        out.value = bounds.size() > 1 ? p_.extremum(e->kind, std::move(bounds)) : bounds[0];
        const bool least = e->kind == Kind::Min;
        for (const Expr x : open) {
            const From r = reach(x, least ? 1 : -1, least ? out.value : negated(out.value));
            if (!r) return std::nullopt;
            out.from = join(out.from, *r);
        }
        return out;
    }

    /// From where on sign * e >= k, Ints.
    From reach(Expr e, int sign, Expr k) {
        if (!on(e) || --questions_ < 0) return std::nullopt;
        switch (e->kind) {
        case Kind::Index: return sign > 0 ? From(k) : std::nullopt;
        case Kind::Sum: return reach_sum(e, sign, k);
        case Kind::Min:
        case Kind::Max: {
            const bool one = (e->kind == Kind::Max) == (sign > 0); // is enough
            Expr all = nullptr;
            for (const Expr a : e->args) {
                From r = reach(a, sign, k);
                if (const auto t = settle(a); !r && !one && t)
                    if (never_negative(p_, p_.isum(0, {{sign, t->value}, {-1, k}}))) r = t->from;
                if (one && r) return r;
                if (!one && !r) return std::nullopt;
                if (r) all = join(all, *r);
            }
            return one ? std::nullopt : From(all);
        }
        case Kind::FloorDiv: {
            const Expr n = e->args[1];
            if (!is_const(n) || n->integer <= 0) return std::nullopt;
            const Expr times = p_.mul(k, n);
            return reach(e->args[0], sign, sign > 0 ? times : p_.isum(1 - n->integer, {{1, times}}));
        }
        case Kind::Select: {
            const From a = reach(e->args[1], sign, k), b = reach(e->args[2], sign, k);
            return a && b ? From(join(*a, *b)) : std::nullopt;
        }
        case Kind::Cast: // y >= k, and so is what truncation leaves of it
            return e->args[0]->type == Type::Bool
                       ? std::nullopt
                       : reach_real(e->args[0], sign, p_.cast(Type::Real, k), p_.boolean(true), nullptr);
        default: return std::nullopt;
        }
    }

    From reach_sum(Expr e, int sign, Expr k) {
        Expr open = nullptr, from = nullptr;
        std::int64_t c = 0;
        std::vector<std::pair<std::int64_t, Expr>> need{{1, k}}; // that c * open has to be
        for (std::size_t n = 0; n < e->args.size(); ++n) {
            const auto t = settle(e->args[n]);
            if (!t && open) return std::nullopt;
            if (t) {
                need.emplace_back(-sign * e->icoef[n], t->value);
                from = join(from, t->from);
            } else {
                open = e->args[n], c = e->icoef[n];
            }
        }
        if (!open) return std::nullopt;
        const std::int64_t times = std::abs(c);
        const Expr least = p_.isum(-sign * e->integer, std::move(need));
        const Expr rounded_up = p_.apply(Op::FloorDiv, p_.isum(times - 1, {{1, least}}), p_.integer(times));
        const From r = reach(open, c > 0 ? sign : -sign, rounded_up);
        return r ? From(join(from, *r)) : r;
    }

    /// From where on sign * e >= k, if `given` holds of what e is made of: Real or float32 arithmetic, k a Real.
    From reach_real(Expr e, int sign, Expr k, Expr given, Expr from) {
        if (!on(e) || --questions_ < 0) return std::nullopt;
        const auto real = [&](Expr x) { return x->type == Type::F32 ? p_.cast(Type::Real, x) : x; };
        const auto positive = [&](Expr x) { return p_.logical_and(given, p_.apply(Op::Lt, p_.real(0), x)); };
        const auto power = [&](Expr x, std::int64_t n) { return p_.product(Type::Real, {{x, n, 1}}); };
        const auto times = [&](Expr x, Expr y) { return p_.product(Type::Real, {{x, 1, 1}, {y, 1, 1}}); };
        if (e->kind == Kind::Cast && e->args[0]->type == Type::Int) {
            // at least 0, so that room is above it; no number at all where a condition fails
            const Expr wide = p_.rsum(0, {{kRoom, p_.apply(Op::Max, k, p_.real(0))}});
            const Expr most = p_.real(static_cast<double>(kNever));
            const Expr least = p_.cast(Type::Int, p_.select(given, p_.apply(Op::Min, wide, most), most));
            const From r = reach(e->args[0], sign, p_.isum(1, {{1, least}}));
            return r ? From(join(from, *r)) : r;
        }
        if (e->kind == Kind::Cast) return reach_real(e->args[0], sign, k, given, from);
        if (e->kind == Kind::Product || (e->kind == Kind::Sum && e->real == 0 && e->args.size() == 1)) {
            Expr open = nullptr, by = p_.real(e->kind == Kind::Sum ? e->rcoef[0] : 1);
            for (std::size_t n = 0; n < e->args.size(); ++n) {
                const bool whole = e->kind == Kind::Sum || (e->num[n] == 1 && e->den[n] == 1);
                const auto t = settle(e->args[n]);
                if (!t && (open || !whole)) return std::nullopt;
                if (!t) open = e->args[n];
                if (t && e->kind == Kind::Sum) return std::nullopt;
                if (t) by = p_.product(Type::Real, {{by, 1, 1}, {t->value, e->num[n], e->den[n]}});
                if (t) from = join(from, t->from);
            }
            return open ? reach_real(open, sign, times(k, power(by, -1)), positive(by), from) : std::nullopt;
        }
        if (e->kind != Kind::F32Fn && e->kind != Kind::Fn) return std::nullopt;
        if (e->args.size() == 1 && sign > 0) {
            const Expr x = e->args[0];
            if (e->op == Op::Log || e->op == Op::Log1p) return reach_real(x, 1, p_.apply(Op::Exp, k), given, from);
            if (e->op == Op::Log2) return reach_real(x, 1, p_.apply(Op::Exp2, k), given, from);
            if (e->op == Op::Sqrt) return reach_real(x, 1, power(k, 2), given, from);
        }
        if (e->args.size() != 2) return std::nullopt;
        if (e->op == Op::Max && sign > 0) {
            for (const Expr a : e->args)
                if (const From r = reach_real(a, 1, k, given, from)) return r;
            return std::nullopt;
        }
        const bool second = e->op == Op::Mul && on(e->args[1]);
        const auto by = settle(e->args[second ? 0 : 1]);
        if (!by || (e->op != Op::Mul && e->op != Op::Div)) return std::nullopt;
        const Expr factor = real(by->value);
        const Expr least = times(k, e->op == Op::Mul ? power(factor, -1) : factor);
        return reach_real(e->args[second ? 1 : 0], sign, least, positive(factor), join(from, by->from));
    }

    ExprPool& p_;
    const std::uint64_t u_;
    int questions_ = kQuestions; ///< that are left
    std::unordered_map<Expr, std::optional<Tail>> done_;
};

} // namespace

std::optional<Tail> tail(ExprPool& pool, Expr e, int variable) {
    return Settle(pool, variable).settle(e);
}

} // namespace cubridge::ir::mask
