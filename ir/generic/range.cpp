// Bounds of sizes as launch codes. SPDX-License-Identifier: Apache-2.0
#include "ir/generic/prepare.h"

namespace cubridge::ir::generic {
namespace {

using launch::Code;
using launch::Size;
using Maybe = std::optional<Code>;

Maybe both(Code::Do what, const Maybe& a, const Maybe& b) {
    if (!a || !b) return std::nullopt;
    return Code::binary(what, *a, *b);
}

bool is_constant(const Maybe& c, std::int64_t at_least) {
    return c && c->steps.size() == 1 && c->steps[0].what == Code::Do::Push && c->steps[0].value >= at_least;
}

class Bounds {
public:
    Bounds(const Prepared& p, bool exact) : p_(p), exact_(exact) {}

    Range operator()(Expr e) const {
        switch (e->kind) {
        case Kind::Const: return same(Code::constant(e->integer));
        case Kind::Dim: return dim(e->number);
        case Kind::Sum: return sum(e);
        case Kind::Product: return product(e);
        case Kind::FloorDiv:
        case Kind::Mod: return division(e);
        case Kind::Min:
        case Kind::Max: return extremum(e);
        case Kind::Cast:
            if (e->args[0]->type == Type::Bool && !exact_) return {Code::constant(0), Code::constant(1)};
            return {};
        case Kind::Select: {
            if (exact_) return {};
            const Range a = (*this)(e->args[1]), b = (*this)(e->args[2]);
            return {both(Code::Do::Min, a.low, b.low), both(Code::Do::Max, a.high, b.high)};
        }
        default: return {};
        }
    }

private:
    static Range same(Code c) { return {c, c}; }

    Range dim(int number) const {
        const auto units = [&](Size s, std::int64_t per) {
            return same(per == 1 ? Code::size(s)
                                 : Code::binary(Code::Do::FloorDiv, Code::size(s), Code::constant(per)));
        };
        const auto length = [&](Size s) { return Range{exact_ ? Code::size(s) : Code::constant(0), Code::size(s)}; };
        switch (number) {
        case dims::B: return same(Code::size(Size::Requests));
        case dims::Sq: return length(Size::MaxQ);
        case dims::Sk: return length(Size::MaxKv);
        case kUnits: return units(Size::HeadsKv, p_.heads.k);
        case kFirstUnit: return units(Size::HeadBegin, p_.heads.q);
        default: break;
        }
        if (!dims::is_input(number)) return {};
        const auto x = static_cast<std::size_t>(dims::input(number));
        if (x >= p_.slot.size() || p_.slot[x] < 0) return {};
        return same(Code::operand(p_.slot[x], dims::axis(number)));
    }

    Range sum(Expr e) const {
        Range r = same(Code::constant(e->integer));
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const Range a = (*this)(e->args[k]);
            const std::int64_t c = e->icoef[k];
            const auto term = [&](const Maybe& x) { return both(Code::Do::Mul, x, Code::constant(c)); };
            r.low = both(Code::Do::Add, r.low, term(c > 0 ? a.low : a.high));
            r.high = both(Code::Do::Add, r.high, term(c > 0 ? a.high : a.low));
        }
        return r;
    }

    /// Of sizes, which are not negative: a factor whose bound could be is not taken.
    Range product(Expr e) const {
        Range r = same(Code::constant(1));
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            if (e->args[k]->kind != Kind::Dim && !exact_) return {};
            const Range a = (*this)(e->args[k]);
            for (std::int64_t n = 0; n < e->num[k]; ++n) {
                r.low = both(Code::Do::Mul, r.low, a.low);
                r.high = both(Code::Do::Mul, r.high, a.high);
            }
        }
        return r;
    }

    Range division(Expr e) const {
        const Range a = (*this)(e->args[0]), b = (*this)(e->args[1]);
        if (exact_) return same_of(both(e->kind == Kind::Mod ? Code::Do::Mod : Code::Do::FloorDiv, a.high, b.high));
        if (!is_constant(b.low, 1) || !is_const(e->args[1])) return {};
        if (e->kind == Kind::Mod) return {Code::constant(0), Code::constant(e->args[1]->integer - 1)};
        return {both(Code::Do::FloorDiv, a.low, b.low), both(Code::Do::FloorDiv, a.high, b.high)};
    }

    static Range same_of(const Maybe& c) { return {c, c}; }

    Range extremum(Expr e) const {
        const auto what = e->kind == Kind::Min ? Code::Do::Min : Code::Do::Max;
        Range r = (*this)(e->args[0]);
        for (std::size_t k = 1; k < e->args.size(); ++k) {
            const Range a = (*this)(e->args[k]);
            r.low = both(what, r.low, a.low);
            r.high = both(what, r.high, a.high);
        }
        return r;
    }

    const Prepared& p_;
    bool exact_;
};

} // namespace

Range range(const Prepared& p, Expr e) {
    return Bounds(p, false)(e);
}
std::optional<launch::Code> code(const Prepared& p, Expr e) {
    return Bounds(p, true)(e).high;
}

} // namespace cubridge::ir::generic
