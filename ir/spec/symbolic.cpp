// Sizes, Python numbers and what is assumed about them. SPDX-License-Identifier: Apache-2.0
#include "ir/spec/symbolic.h"
#include "ir/expr/build.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir::spec {

namespace {

bool is_base(int dim) {
    return dim < dims::Hv;
} // sizes of a request; the others follow from them

} // namespace

std::string SymbolicDomain::text(Expr e) const {
    return debug_text(e);
}
std::string SymbolicDomain::text(const std::vector<Expr>& shape) const {
    std::string out = "[";
    for (std::size_t k = 0; k < shape.size(); ++k) out += (k ? ", " : "") + debug_text(shape[k]);
    return out + "]";
}

Expr SymbolicDomain::resolve(Expr e) {
    if (know_.defined.empty()) return e;
    return pool_.rewrite(e, [&](Expr x) {
        if (x->kind != Kind::Dim) return x;
        const auto it = know_.defined.find(x->number);
        return it == know_.defined.end() ? x : resolve(it->second);
    });
}

Expr SymbolicDomain::to_expr(const Value& v) {
    if (v.is<bool>()) return pool_.boolean(v.as<bool>());
    if (v.is<std::int64_t>()) return pool_.integer(v.as<std::int64_t>());
    if (v.is<double>()) return pool_.real(v.as<double>());
    return v.as<Expr>();
}

Value SymbolicDomain::to_value(Expr e) {
    if (!is_const(e)) return e;
    if (e->type == Type::Bool) return e->integer != 0;
    if (e->type == Type::Int) return e->integer;
    return e->real;
}

Expr SymbolicDomain::size_of(const Value& v) {
    const Expr e = to_expr(v);
    if (e->type == Type::Real) fail("type", "a size must be an int, this is a float");
    std::set<int> dims, args;
    bool loads = false;
    dims_of(e, dims, args, loads);
    if (!args.empty()) { // a captured number in a size is part of the structure
        know_.statics.insert(args.begin(), args.end());
        throw Restart{};
    }
    return resolve(pool_.cast(Type::Int, e));
}

void SymbolicDomain::dims_of(Expr e, std::set<int>& dims, std::set<int>& args, bool& loads) const {
    std::set<Expr> seen;
    const auto visit = [&](auto&& self, Expr x) -> void {
        pool_.meter().spend(1);
        if (!seen.insert(x).second) return;
        if (x->kind == Kind::Dim) dims.insert(x->number);
        if (x->kind == Kind::Arg) args.insert(x->number);
        if (x->kind == Kind::Load) loads = true;
        for (const Expr a : x->args) self(self, a);
    };
    visit(visit, e);
}

// Zero by normal form, or by what is known: exact divisions and settled constants.
bool SymbolicDomain::is_zero(Expr d) {
    if (is_const(d)) return d->integer == 0;
    for (const Fact& f : know_.facts) {
        if (f.kind == Fact::Kind::Equal && is_const(f.right) && f.left->kind == Kind::Dim) {
            const Expr e = pool_.rewrite(d, [&](Expr x) { return x == f.left ? f.right : x; });
            if (e != d) return is_zero(e);
        }
        if (f.kind == Fact::Kind::Divides && is_const(f.right)) { // c * (x // c) is x
            const Expr quotient = pool_.apply(Op::FloorDiv, f.left, f.right);
            IntSum s = as_sum(pool_.mul(d, f.right));
            bool found = false;
            for (auto& [c, t] : s.terms) {
                const Expr rest = detail::divide_exactly(pool_, t, quotient);
                if (!rest || c % f.right->integer != 0) continue;
                t = pool_.mul(rest, f.left);
                c /= f.right->integer;
                found = true;
            }
            if (found) return is_zero(pool_.isum(s.constant, s.terms));
        }
    }
    return false;
}

bool SymbolicDomain::may_define(Expr free_dim, Expr value) const {
    std::set<int> dims, args;
    bool loads = false;
    dims_of(value, dims, args, loads);
    if (!args.empty() || loads || dims.contains(free_dim->number)) return false;
    // An axis of a captured tensor is one size, or a product of a request's sizes; "the length of x1 is G times that of
    // x2" would be a misreading of its rank.
    if (value->kind == Kind::Product)
        for (const int d : dims)
            if (!is_base(d)) return false;
    if (detail::is_group(value)) return false;
    if (value->kind == Kind::Product)
        for (const Expr a : value->args)
            if (detail::is_group(a)) return false;
    return true;
}

void SymbolicDomain::require(Fact::Kind kind, Expr left, Expr right) {
    if (kind == Fact::Kind::AtLeast && left->kind == Kind::Sum && left->args.size() == 1 && left->icoef[0] == 1 &&
        is_const(right)) {
        right = pool_.sub(right, pool_.integer(left->integer)); // D - 512 >= 0 is D >= 512
        left = left->args[0];
    }
    constexpr const char* signs[] = {" == ", " >= ", " % "};
    for (const Fact& f : know_.facts)
        if (f.kind == kind && f.left == left && f.right == right) return;
    Fact f{kind, left, right, {}, text(left) + signs[static_cast<int>(kind)] + text(right)};
    if (kind == Fact::Kind::Divides) f.text += " == 0";
    know_.facts.push_back(std::move(f));
}

void SymbolicDomain::unify(Expr a, Expr b, const char* what) {
    a = resolve(a), b = resolve(b);
    if (a == b || is_zero(pool_.sub(a, b))) return;
    const auto define = [&](Expr dim, Expr value) {
        if (!may_define(dim, value)) return false;
        know_.defined[dim->number] = value;
        throw Restart{};
    };
    const auto solve = [&](Expr x, Expr y) { // a free Dim in x, alone, as a factor, or with a constant added
        const auto is_free = [](Expr e) { return e->kind == Kind::Dim && !is_base(e->number); };
        if (is_free(x) && !(is_free(y) && y->number > x->number)) define(x, y);
        if (x->kind == Kind::Product)
            for (std::size_t k = 0; k < x->args.size(); ++k) {
                if (!is_free(x->args[k]) || x->num[k] != 1) continue;
                const Expr rest = detail::divide_exactly(pool_, x, x->args[k]);
                if (const Expr q = rest ? detail::divide_exactly(pool_, y, rest) : nullptr) define(x->args[k], q);
            }
        if (x->kind == Kind::Sum && x->args.size() == 1 && x->icoef[0] == 1 && is_free(x->args[0]))
            define(x->args[0], pool_.sub(y, pool_.integer(x->integer)));
    };
    solve(a, b);
    solve(b, a);
    // 2 * (H // 2) == H where H is even
    for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
        if (x->kind != Kind::Sum || x->args.size() != 1 || x->integer != 0 || x->args[0]->kind != Kind::FloorDiv)
            continue;
        const Expr q = x->args[0];
        if (q->args[0] == y && is_int(q->args[1], x->icoef[0])) {
            require(Fact::Kind::Divides, y, q->args[1]);
            return;
        }
    }
    const auto base = [](Expr e) { return e->kind == Kind::Dim && is_base(e->number); };
    const auto pair = [&](int x, int y) {
        return base(a) && base(b) && ((a->number == x && b->number == y) || (a->number == y && b->number == x));
    };
    const auto equate = [&](int dropped, int kept) {
        require(Fact::Kind::Equal, pool_.dim(dropped), pool_.dim(kept));
        know_.defined[dropped] = pool_.dim(kept);
        throw Restart{};
    };
    if (pair(dims::Sq, dims::Sk)) equate(dims::Sq, dims::Sk);
    if (pair(dims::Hq, dims::Hk)) equate(dims::Hk, dims::Hq);
    if (pair(dims::D, dims::Dv)) equate(dims::Dv, dims::D);
    for (const auto& [x, y] : {std::pair{a, b}, std::pair{b, a}}) {
        if (!base(x) || !is_const(y) || y->integer < 1) continue;
        if (x->number == dims::D || x->number == dims::Dv) {
            require(Fact::Kind::Equal, x, y);
            know_.defined[x->number] = y;
            throw Restart{};
        }
        if (x->number == dims::Hq && know_.heads == y->integer) {
            require(Fact::Kind::Equal, x, y);
            return;
        }
        if (x->number == dims::Hk && y->integer == 1) {
            require(Fact::Kind::Equal, x, y);
            return;
        }
    }
    fail("shape", std::string(what) + ": the sizes " + text(a) + " and " + text(b) + " do not agree", {},
         "q is [B, Hq, Sq, D], k [B, Hk, Sk, D], v [B, Hk, Sk, Dv]; repeat k and v by Hq // Hk where heads are shared");
}

// e >= 0 for all positions and sizes. A captured int in it is assumed not to be negative, as a fact.
bool SymbolicDomain::nonnegative(Expr e, int depth) {
    pool_.meter().spend(1);
    const auto facts = static_cast<std::ptrdiff_t>(know_.facts.size());
    if (depth <= 12 && proves_nonnegative(e, depth)) return true;
    know_.facts.erase(know_.facts.begin() + facts,
                      know_.facts.end()); // a proof that failed demands nothing of the text
    return false;
}

bool SymbolicDomain::proves_nonnegative(Expr e, int depth) {
    switch (e->kind) {
    case Kind::Const: return e->type == Type::Int && e->integer >= 0;
    case Kind::Index:
    case Kind::Bound:
    case Kind::Dim: return true;
    case Kind::Arg: require(Fact::Kind::AtLeast, e, pool_.integer(0)); return true;
    case Kind::Cast: return e->args[0]->type == Type::Bool;
    case Kind::Min:
    case Kind::Select: {
        for (std::size_t k = e->kind == Kind::Select ? 1 : 0; k < e->args.size(); ++k)
            if (!nonnegative(e->args[k], depth + 1)) return false;
        return true;
    }
    case Kind::Max:
        return std::any_of(e->args.begin(), e->args.end(),
                           [&](Expr a) { return a->kind != Kind::Arg && nonnegative(a, depth + 1); });
    case Kind::FloorDiv: return nonnegative(e->args[0], depth + 1) && nonnegative(e->args[1], depth + 1);
    case Kind::Mod: return e->args[1]->kind == Kind::Dim || (is_const(e->args[1]) && e->args[1]->integer > 0);
    case Kind::Product:
        return std::all_of(e->args.begin(), e->args.end(), [&](Expr a) { return nonnegative(a, depth + 1); });
    case Kind::Reduce:
        return (e->reduce == ReduceOp::Sum || e->reduce == ReduceOp::Min || e->reduce == ReduceOp::Prod) &&
               e->type == Type::Int && nonnegative(e->args[0], depth + 1);
    case Kind::Sum: break;
    default: return false;
    }
    // A max in the sum is at least each of its arguments; a min is one of them.
    for (std::size_t k = 0; k < e->args.size() && depth < 5; ++k) {
        const Expr m = e->args[k];
        const bool up = e->icoef[k] > 0;
        if (m->kind != Kind::Max && m->kind != Kind::Min) continue;
        const bool any = (m->kind == Kind::Max) == up;
        const auto with = [&](Expr a) { return pool_.isum(0, {{1, e}, {-e->icoef[k], m}, {e->icoef[k], a}}); };
        if (any ? std::any_of(m->args.begin(), m->args.end(), [&](Expr a) { return nonnegative(with(a), depth + 1); })
                : std::all_of(m->args.begin(), m->args.end(), [&](Expr a) { return nonnegative(with(a), depth + 1); }))
            return true;
    }
    if (e->integer < 0) return false;
    for (std::size_t k = 0; k < e->args.size(); ++k)
        if (e->icoef[k] < 0 || !nonnegative(e->args[k], depth + 1)) return false;
    return true;
}

// Evaluation is in float64, which holds integers up to 2^53: near it a sum would not be what the text says. Known
// numbers are not evaluated, and in a comparison only the sign counts.
Expr SymbolicDomain::compute(Op op, std::span<const Expr> x) {
    const Expr e = pool_.apply(op, x);
    if (e->type != Type::Int) return e;
    constexpr std::int64_t most = std::int64_t{1} << 52;
    const auto fits = [](std::int64_t v) { return v <= most && v >= -most; };
    const bool divides = e->kind == Kind::FloorDiv || e->kind == Kind::Mod;
    if ((e->kind == Kind::Sum && !(fits(e->integer) && std::all_of(e->icoef.begin(), e->icoef.end(), fits))) ||
        (divides && std::any_of(e->args.begin(), e->args.end(), [&](Expr a) { return !fits(a->integer); })))
        fail("limit", "integer arithmetic with a constant beyond 2^52", {}, "use smaller constants, or floats");
    return e;
}

Value SymbolicDomain::number(Op op, std::span<const Value> x) {
    std::vector<Expr> e;
    bool real = false;
    for (const Value& v : x) {
        e.push_back(resolve(to_expr(v)));
        real = real || e.back()->type == Type::Real;
    }
    if (op == Op::And || op == Op::Or || op == Op::Xor || op == Op::Not) {
        if (std::any_of(e.begin(), e.end(), [](Expr a) { return a->type != Type::Bool; }))
            fail("unsupported", "bitwise operators on numbers that are known at launch only", {}, "use comparisons");
        return to_value(pool_.apply(op, e));
    }
    if (op == Op::Div || info(op).real_in) real = true;
    if (op == Op::Pow && !real && !(is_const(e[1]) && e[1]->integer >= 0 && e[1]->integer <= 16)) real = true;
    if (op == Op::Where) {
        const Type t = real ? Type::Real : Type::Int;
        return to_value(pool_.select(pool_.cast(Type::Bool, e[0]), pool_.cast(t, e[1]), pool_.cast(t, e[2])));
    }
    for (Expr& a : e) a = pool_.cast(real ? Type::Real : Type::Int, a);
    return to_value(compute(op, e));
}

Value SymbolicDomain::to_float(const Value& v) {
    return to_value(pool_.cast(Type::Real, to_expr(v)));
}

Value SymbolicDomain::to_int(const Value& v) {
    const Expr e = to_expr(v);
    if (e->type != Type::Real) return to_value(pool_.cast(Type::Int, e));
    std::set<int> dims, args;
    bool loads = false;
    dims_of(e, dims, args, loads);
    if (!dims.empty()) return require_int(to_value(pool_.cast(Type::Int, e)), "int()");
    return to_value(pool_.cast(Type::Int, e));
}

bool SymbolicDomain::truth(const Value& v) {
    const Expr e = resolve(to_expr(v));
    const Expr c = pool_.cast(Type::Bool, e);
    if (is_const(c)) return c->integer != 0;
    std::set<int> dims, args;
    bool loads = false;
    dims_of(c, dims, args, loads);
    if (loads || (c->free & ~std::uint64_t{0}) != 0)
        fail("unsupported", "a condition of Python hangs on the data of a tensor", {},
             "use torch.where, which chooses element by element");
    if (!args.empty()) {
        know_.statics.insert(args.begin(), args.end());
        throw Restart{};
    }
    if (dims == std::set<int>{dims::Hq} && know_.heads > 0)
        return require_int(to_value(pool_.cast(Type::Int, c)), "a condition") != 0;
    if (c->kind == Kind::Cmp && c->args.size() == 1 && c->op == Op::Le) { // sizes are not negative
        if (nonnegative(pool_.isum(-1, {{1, c->args[0]}}))) return false;
        if (nonnegative(pool_.isum(0, {{-1, c->args[0]}}))) return true;
    }
    if (c->kind == Kind::Not && c->args[0]->kind == Kind::Cmp && is_zero(c->args[0]->args[0])) return false;
    if (c->kind == Kind::Cmp && c->op == Op::Eq && c->args.size() == 1 && is_zero(c->args[0])) return true;
    for (const auto& [known, way] : know_.branches) {
        if (known == c) return way;
        if (known == pool_.logical_not(c)) return !way;
    }
    know_.branches.emplace_back(c, false); // the driver runs the other way as well
    throw Restart{};
}

std::int64_t SymbolicDomain::require_int(const Value& v, const char* what_for) {
    Expr e = resolve(to_expr(v));
    if (is_const(e)) return e->integer;
    std::set<int> dims, args;
    bool loads = false;
    dims_of(e, dims, args, loads);
    if (!args.empty() && dims.empty() && !loads) {
        know_.statics.insert(args.begin(), args.end());
        throw Restart{};
    }
    if (dims == std::set<int>{dims::Hq} && args.empty() && !loads) {
        if (know_.heads == 0) {
            if (know_.heads_available == 0)
                fail("domain", "the text computes with the number of query heads, which the request leaves open", {},
                     "give the number of heads");
            know_.heads = know_.heads_available;
        }
        require(Fact::Kind::Equal, pool_.dim(dims::Hq), pool_.integer(know_.heads));
        e = pool_.rewrite(e, [&](Expr x) { return x->kind == Kind::Dim ? pool_.integer(know_.heads) : x; });
        if (is_const(e)) return e->integer;
    }
    fail("unsupported",
         std::string(what_for) + " needs a number that is known before the launch, this is " + text(e).substr(0, 120),
         {}, "lengths are known at launch only: write it with whole-tensor operations");
}

double SymbolicDomain::require_float(const Value& v, const char* what_for) {
    const Expr e = resolve(to_expr(v));
    if (is_const(e)) return e->type == Type::Real ? e->real : static_cast<double>(e->integer);
    return static_cast<double>(require_int(v, what_for));
}

} // namespace cubridge::ir::spec
