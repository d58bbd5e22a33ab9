// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/writer.h"
#include "ir/expr/build.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir::transfer {

NodePtr Uses::integer(std::int64_t value) {
    if (value >= -1 && value <= 2) return small(value);
    if (value < 0) return negative(integer(-value));
    for (const auto& [v, n] : constants)
        if (v == value) return name(n);
    constants.emplace_back(value, "C" + std::to_string(constants.size()));
    return name(constants.back().second);
}

Level Writer::level(Expr e) {
    if (const auto it = levels_.find(e); it != levels_.end()) return it->second;
    Level out = Level::Kernel;
    if (e->kind == Kind::Index) {
        const int n = e->number;
        out = n == axis::i ? Level::Row : n == axis::j || n == axis::d ? Level::Column : Level::Scalar;
    } else if (e->kind == Kind::Dim) { // lengths are those of the request
        const bool fixed = e->number <= dims::Hk || e->number == dims::D || e->number == dims::Dv;
        out = fixed && e->number != dims::Sq && e->number != dims::Sk ? Level::Kernel : Level::Scalar;
    } else if (e->kind == Kind::Arg) { // a request may have a copy of its own
        out = e->number == kLog2e ? Level::Kernel : Level::Scalar;
    } else if (e->kind == Kind::Load && e->number >= kScore && e->number < kLse) {
        out = Level::Tile;
    } else if (e->kind == Kind::Load && e->number >= kLse && e->number < kLog2e) {
        out = Level::Row;
    } else {
        if (e->kind == Kind::Load && e->number != kReal) out = Level::Scalar;
        for (const Expr a : e->args) out = join(out, level(a));
    }
    levels_.emplace(e, out);
    return out;
}

bool Writer::heavy(Expr e) {
    if (const auto it = heavy_.find(e); it != heavy_.end()) return it->second;
    bool out = false;
    switch (e->kind) {
    case Kind::Const:
    case Kind::Index:
    case Kind::Bound:
    case Kind::Dim:
    case Kind::Arg: break;
    case Kind::Load:
    case Kind::Table:
    case Kind::Reduce:
    case Kind::Fn:
    case Kind::F32Fn: out = true; break;
    case Kind::Sum:
    case Kind::Product: out = e->type == Type::Real; break;
    default: break;
    }
    for (const Expr a : e->args) out = out || heavy(a);
    heavy_.emplace(e, out);
    return out;
}

NodePtr Writer::write(Expr e, Level context) {
    if (named)
        if (NodePtr x = named(e)) return x;
    const Level own = level(e);
    return own < context && hoist && hoists_lower && heavy(e) ? hoist(e, own) : make(e);
}

/// For what is used more than once.
NodePtr Writer::once(Expr e) {
    return hoist && heavy(e) ? hoist(e, level(e)) : make(e);
}

NodePtr Writer::chain(const std::vector<Signed>& terms) {
    std::vector<Signed> order = terms;
    std::stable_sort(order.begin(), order.end(), [](const auto& a, const auto& b) { return a.minus < b.minus; });
    NodePtr out;
    for (const auto& t : order) {
        if (!out)
            out = t.minus ? negative(t.node) : t.node;
        else
            out = binary(t.minus ? "-" : "+", out, t.node);
    }
    return out ? out : small(0);
}

NodePtr Writer::int_sum(Expr e) {
    const Level own = level(e);
    std::vector<Signed> terms;
    std::vector<std::pair<std::int64_t, Expr>> rows, low; // what varies less often, as sums of their own
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const auto c = e->icoef[k];
        const Level l = level(e->args[k]);
        if (l == own || (own == Level::Tile && l == Level::Column)) {
            const NodePtr t = write(e->args[k], own);
            terms.push_back({c == 1 || c == -1 ? t : binary("*", uses_.integer(std::abs(c)), t), c < 0});
        } else {
            (l == Level::Row ? rows : low).emplace_back(c, e->args[k]);
        }
    }
    if (!rows.empty()) rows.insert(rows.end(), low.begin(), low.end());
    auto& group = rows.empty() ? low : rows;
    if (group.empty()) {
        const bool all_minus = std::all_of(terms.begin(), terms.end(), [](const auto& t) { return t.minus; });
        if (e->integer == 0) return chain(terms);
        const NodePtr constant = uses_.integer(std::abs(e->integer));
        if (all_minus && e->integer > 0) { // 1 - x
            terms.insert(terms.begin(), {constant, false});
            return chain(terms);
        }
        return binary(e->integer < 0 ? "-" : "+", chain(terms), constant);
    }
    const bool minus =
        e->integer <= 0 && std::all_of(group.begin(), group.end(), [](const auto& t) { return t.first < 0; });
    const std::int64_t sign = minus ? -1 : 1;
    for (auto& t : group) t.first *= sign;
    terms.push_back({write(pool_.isum(sign * e->integer, group), own), minus});
    return chain(terms);
}

NodePtr Writer::real_sum(Expr e) {
    const Level own = level(e);
    std::map<Level, std::vector<std::pair<double, Expr>>> low;
    std::vector<Signed> terms;
    const auto sign = [](double c) { return std::signbit(c); };
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const Expr t = e->args[k];
        const double c = e->rcoef[k];
        if (level(t) != own) {
            low[level(t)].emplace_back(c, t);
        } else if (t->kind == Kind::Product) {
            terms.push_back({product(t, std::abs(c)), sign(c)});
        } else {
            NodePtr x = write(t, own);
            if (std::abs(c) != 1) x = binary("*", x, real(std::abs(c)));
            terms.push_back({x, sign(c)});
        }
    }
    double constant = e->real;
    // what is constant joins what varies less often than the tile
    for (const Level from : {Level::Kernel, Level::Scalar})
        for (const Level to : {Level::Scalar, Level::Column, Level::Row})
            if (to > from && low.count(from) != 0 && low.count(to) != 0) {
                auto moved = std::move(low[from]);
                low.erase(from);
                low[to].insert(low[to].end(), moved.begin(), moved.end());
                break;
            }
    for (auto it = low.rbegin(); it != low.rend(); ++it) {
        auto& group = it->second;
        const bool minus =
            constant <= 0 && std::all_of(group.begin(), group.end(), [&](const auto& t) { return sign(t.first); });
        if (minus)
            for (auto& t : group) t.first = -t.first;
        terms.push_back({write(pool_.rsum(minus ? -constant : constant, group), own), minus});
        constant = 0;
    }
    if (constant != 0) terms.push_back({real(std::abs(constant)), constant < 0});
    return chain(terms);
}

NodePtr Writer::flat_product(const std::vector<ExprPool::Power>& factors, NodePtr coefficient) {
    Nodes above, below;
    if (coefficient) above.push_back(std::move(coefficient));
    for (const auto& f : factors) {
        const Level own = level(f.base);
        auto n = f.num;
        const auto d = f.den;
        if (d == 2 && std::abs(n) == 1) {
            if (n > 0)
                above.push_back(call("sqrt", {write(f.base, own)}));
            else if (own <= Level::Scalar)
                below.push_back(call("sqrt", {write(f.base, own)}));
            else
                above.push_back(call("rsqrt", {write(f.base, own)}));
            continue;
        }
        if (d != 1) {
            const double exponent = static_cast<double>(n) / static_cast<double>(d);
            above.push_back(call("pow", {write(f.base, own), real(exponent)}));
            continue;
        }
        auto& side = n > 0 ? above : below;
        n = std::abs(n);
        if (n > 4) {
            side.push_back(call("pow", {write(f.base, own), real(static_cast<double>(n))}));
            continue;
        }
        const NodePtr x = n > 1 ? once(f.base) : write(f.base, own);
        for (; n > 0; --n) side.push_back(x);
    }
    const auto times = [](const Nodes& x) {
        NodePtr out;
        for (const auto& f : x) out = out ? binary("*", out, f) : f;
        return out;
    };
    if (below.empty()) return above.empty() ? real(1.0) : times(above);
    // of an element: a product with a reciprocal, which is one instruction of the hardware
    const bool tile =
        std::any_of(factors.begin(), factors.end(), [&](const auto& f) { return level(f.base) == Level::Tile; });
    if (tile && !above.empty()) return binary("*", times(above), binary("/", real(1.0), times(below)));
    return binary("/", above.empty() ? real(1.0) : times(above), times(below));
}

NodePtr Writer::product(Expr e, double coefficient) {
    const Level own = level(e);
    std::vector<ExprPool::Power> high;
    std::map<Level, std::vector<ExprPool::Power>> low;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const ExprPool::Power f{e->args[k], e->num[k], e->den[k]};
        const Level l = level(f.base);
        if (l == own)
            high.push_back(f);
        else
            low[l].push_back(f);
    }
    if (e->type == Type::Int) {
        NodePtr out;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            for (auto n = e->num[k]; n > 0; --n) {
                const NodePtr x = write(e->args[k], own);
                out = out ? binary("*", out, x) : x;
            }
        return out;
    }
    for (const Level from : {Level::Kernel, Level::Scalar})
        for (const Level to : {Level::Scalar, Level::Column, Level::Row})
            if (to > from && low.count(from) != 0 && low.count(to) != 0) {
                auto moved = std::move(low[from]);
                low.erase(from);
                low[to].insert(low[to].end(), moved.begin(), moved.end());
                break;
            }
    if (low.empty()) {
        const bool log = coefficient == 1 && !high.empty() && high[0].base == log2e(pool_) && high[0].num == 1;
        if (log) { // LOG2E stands first: LOG2E / sqrt(D)
            const NodePtr first = name("LOG2E");
            high.erase(high.begin());
            return flat_product(high, first);
        }
        return flat_product(high, coefficient == 1 ? nullptr : real(coefficient));
    }
    // the numerator's first factor is what varies most
    NodePtr group;
    for (auto it = low.begin(); it != low.end(); ++it) {
        Expr g = pool_.product(Type::Real, it->second);
        if (it == low.begin() && coefficient != 1) g = pool_.rsum(0, {{coefficient, g}});
        const NodePtr x = write(g, own);
        group = group ? binary("*", group, x) : x;
    }
    const bool divides = std::all_of(high.begin(), high.end(), [](const auto& f) { return f.num < 0 && f.den == 1; });
    if (divides) return flat_product(high, group);
    return binary("*", flat_product(high, nullptr), group);
}

NodePtr Writer::compare_with_zero(Expr e, const char* equal, bool negated) {
    const bool order = equal[0] != '='; // e <= 0
    IntSum s = as_sum(e);
    // the bare variable that a comparison is solved for
    for (const int v : {axis::j, axis::i, axis::d})
        for (const auto& [c, t] : s.terms) {
            if (t->kind != Kind::Index || t->number != v || std::abs(c) != 1) continue;
            const bool mixed = std::any_of(s.terms.begin(), s.terms.end(), [&, t = t](const auto& o) {
                return o.second != t && (o.second->free & index_bit(v)) != 0;
            });
            if (mixed) continue;
            std::vector<std::pair<std::int64_t, Expr>> rest;
            for (const auto& [k, o] : s.terms)
                if (o != t) rest.emplace_back(-c * k, o);
            std::int64_t constant = -c * s.constant;
            const char* sign = negated ? "!=" : "==";
            if (order) { // c = 1: t <= rest; c = -1: t >= rest. Off by one goes into the sign
                const bool up = (c < 0) != negated;
                bool strict = negated;
                if (c > 0 && !negated && constant == -1) strict = true, constant = 0;
                if (c < 0 && !negated && constant == 1) strict = true, constant = 0;
                sign = up ? (strict ? ">" : ">=") : (strict ? "<" : "<=");
            }
            const NodePtr variable = write(t, level(e));
            return compare(variable, sign, write(pool_.isum(constant, rest), level(e)));
        }
    std::vector<std::pair<std::int64_t, Expr>> left, right;
    for (const auto& [c, t] : s.terms) {
        if (c > 0)
            left.emplace_back(c, t);
        else
            right.emplace_back(-c, t);
    }
    std::int64_t constant = -s.constant; // left OP right + constant
    const char* sign = order ? (negated ? ">" : "<=") : (negated ? "!=" : "==");
    if (order && !negated && constant == -1) sign = "<", constant = 0;
    const std::int64_t on_left = constant < 0 && !right.empty() ? -constant : 0;
    const Expr a = pool_.isum(on_left, left), b = pool_.isum(on_left != 0 ? 0 : constant, right);
    const NodePtr x = write(a, level(e)), y = write(b, level(e));
    return !order && level(a) < level(b) ? compare(y, sign, x) : compare(x, sign, y);
}

NodePtr Writer::dim(int number) {
    if (dims::is_input(number)) {
        const int x = canonical(v_, dims::input(number));
        if (x < 0) fail("no_rule", "the size " + dims::name(number) + " is of no operand");
        uses_.operands.insert(x);
        return extent("x" + std::to_string(x), uses_.integer(dims::axis(number)));
    }
    switch (number) {
    case dims::Hv: return extent("V", small(1));
    case dims::kB: return extent("K", small(0));
    case dims::vB: return extent("V", small(0));
    case dims::vS: return extent("V", small(2));
    case dims::kD: return name("D");
    default: return name(dims::name(number));
    }
}

NodePtr Writer::input(Expr e) {
    if (e->number == kReal) return call("f32", {write(e->args[0], level(e))});
    if (e->number == kTanhSmall) return call("tanh_small", {write(e->args[0], level(e))});
    if (e->number == kLogisticSmall) return call("logistic_small", {write(e->args[0], level(e))});
    if (leaf)
        if (NodePtr x = leaf(e)) return x;
    const Level own = level(e);
    Nodes at;
    for (const Expr a : e->args) at.push_back(write(a, own));
    if (e->number <= 2) {
        if (!reduce) fail("no_rule", "elements of q, k or v are read outside the two products");
        const std::string tensor(1, "QKV"[e->number]);
        uses_.tensors.insert(tensor);
        return item(tensor, std::move(at));
    }
    const int x = canonical(v_, e->number);
    if (x < 0) fail("no_rule", "an intermediate value of the text stands where no rule expects it");
    uses_.operands.insert(x);
    return item("x" + std::to_string(x), std::move(at));
}

NodePtr Writer::arguments(const std::string& function, Expr e) {
    const Level own = level(e);
    Nodes x;
    for (const Expr a : e->args) x.push_back(write(a, own));
    return call(function, std::move(x));
}

NodePtr Writer::make(Expr e) {
    const Level own = level(e);
    const auto part = [&](std::size_t k) { return write(e->args[k], own); };
    const auto join_by = [&](const char* operation) {
        NodePtr out;
        for (std::size_t k = 0; k < e->args.size(); ++k) out = out ? binary(operation, out, part(k)) : part(k);
        return out;
    };
    switch (e->kind) {
    case Kind::Const:
        if (e->type == Type::Bool) return name(e->integer != 0 ? "True" : "False");
        if (e->type == Type::Int) return uses_.integer(e->integer);
        if (std::isnan(e->real)) fail("no_rule", "the text computes with a constant NaN");
        return real(e->real);
    case Kind::Index:
    case Kind::Bound: {
        const auto it = index.find(e->kind == Kind::Index ? e->number : kMaxIndex + e->number);
        if (it == index.end()) fail("no_rule", "a value depends on a position that it may not depend on here");
        return it->second;
    }
    case Kind::Dim: return dim(e->number);
    case Kind::Arg: {
        if (e->number == kLog2e) return name("LOG2E");
        const int x = canonical(v_, e->number);
        if (x < 0) fail("no_rule", "a value of the text is no operand");
        uses_.operands.insert(x);
        return name("x" + std::to_string(x));
    }
    case Kind::Load: return input(e);
    case Kind::Table:
        if (leaf)
            if (NodePtr x = leaf(e)) return x;
        fail("no_rule", "a constant table stands where no rule expects it");
    case Kind::Sum: return e->type == Type::Int ? int_sum(e) : real_sum(e);
    case Kind::Product: return product(e, 1);
    case Kind::FloorDiv:
        if (const Expr group = pool_.apply(Op::FloorDiv, pool_.dim(dims::Hq), pool_.dim(dims::Hk));
            kv && e->args[1] == group) {
            if (e->args[0] == pool_.index(axis::h)) return kv;
            if (kv->kind == syntax::Kind::Binary && kv->text == "//") return binary("//", part(0), kv->items[1]);
        }
        return join_by("//");
    case Kind::Mod: return join_by("%");
    case Kind::Min:
    case Kind::Max: {
        // |x| is max(x, -x)
        if (e->kind == Kind::Max && e->args.size() == 2 && e->type == Type::Int &&
            pool_.isum(0, {{-1, e->args[0]}}) == e->args[1])
            return call("abs", {part(0)});
        NodePtr out;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            out = out ? call(e->kind == Kind::Min ? "minimum" : "maximum", {out, part(k)}) : part(k);
        return out;
    }
    case Kind::Fn: return arguments(info(e->op).name, e);
    case Kind::F32Fn: {
        Nodes x;
        for (std::size_t k = 0; k < e->args.size(); ++k) x.push_back(part(k));
        return f32_call(info(e->op).name, std::move(x));
    }
    case Kind::Cmp: {
        if (e->args.size() == 1) return compare_with_zero(e->args[0], e->op == Op::Le ? "<=" : "==", false);
        const NodePtr a = part(0), b = part(1);
        return compare(a, e->op == Op::Lt ? "<" : e->op == Op::Le ? "<=" : "==", b);
    }
    case Kind::And: return join_by("&");
    case Kind::Or: return join_by("|");
    case Kind::Not: {
        const Expr x = e->args[0];
        if (x->kind == Kind::Cmp && x->args.size() == 1)
            return compare_with_zero(x->args[0], x->op == Op::Le ? "<=" : "==", true);
        return inverse(part(0));
    }
    case Kind::Select: return arguments("where", e);
    case Kind::Cast: {
        const Expr x = e->args[0];
        if (e->type == Type::Bool) return compare(part(0), "!=", small(0));
        if (e->type == Type::Int) return arguments("i32", e);
        if (e->type == Type::Real && x->type == Type::F32) return part(0);
        if (e->type == Type::Real && is_const(x)) return real(static_cast<double>(x->integer));
        const bool head_dim = x->kind == Kind::Dim && (x->number == dims::D || x->number == dims::Dv);
        return head_dim ? part(0) : arguments("f32", e); // a constant of the kernel
    }
    case Kind::Reduce:
        if (!reduce) fail("no_rule", "a sum or an extremum over positions stands where no rule expects it");
        return reduce(e);
    }
    fail("internal", "an unknown kind of expression");
}

} // namespace cubridge::ir::transfer
