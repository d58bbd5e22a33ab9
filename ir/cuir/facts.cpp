// What operators make of facts. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/facts.h"
#include <cmath>
#include <limits>

namespace cubridge::ir::cuir {
namespace {

using S = Fact::Statistic;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

bool known(int base) {
    return base != Fact::kConstant && base != Fact::kUnknown;
}

int joined(int a, int b) {
    if (a == Fact::kConstant || a == b) return b;
    return b == Fact::kConstant ? a : Fact::kUnknown;
}

S joined(S a, S b) {
    if (a == S::Zero || a == b) return b;
    return b == S::Zero ? a : S::None;
}

/// Functions that take -inf to something that is not 0 weight: of a score they come before the mask.
bool bends(Op op) {
    switch (op) {
    case Op::Tanh:
    case Op::Sin:
    case Op::Cos:
    case Op::Tan:
    case Op::Atan:
    case Op::Erf:
    case Op::Abs:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Log:
    case Op::Log2:
    case Op::Log10:
    case Op::Log1p:
    case Op::Pow: return true;
    default: return false;
    }
}

int product(const Fact& a, const Fact& b, int sign) {
    if (a.base == Fact::kUnknown || b.base == Fact::kUnknown || a.factor || b.factor) return Fact::kUnknown;
    if (!known(a.base) && !known(b.base)) return Fact::kConstant;
    return (known(a.base) ? a.base : 0) + sign * (known(b.base) ? b.base : 0);
}

} // namespace

Fact join(const Fact& a, const Fact& b) {
    if (a.unset) return b;
    if (b.unset) return a;
    Fact out;
    out.statistic = joined(a.statistic, b.statistic);
    out.base = joined(a.base, b.base);
    out.factor = a.factor || b.factor;
    out.score = a.score || b.score;
    out.masked = a.masked || b.masked;
    out.weight = a.weight || b.weight;
    out.loaded = (a.loaded || b.loaded) && !out.score; // a sink or a maximum: a reference of scores
    out.minus_inf = a.minus_inf && b.minus_inf;
    out.vote = a.vote || b.vote;
    if (a.items.size() == b.items.size())
        for (std::size_t k = 0; k < a.items.size(); ++k) out.items.push_back(join(a.items[k], b.items[k]));
    return out;
}

Fact fact_of(const Value& v) {
    Fact f;
    if (v.tag != Value::Tag::Real) return f;
    const double x = std::fabs(v.real);
    if (x == 0) f.statistic = S::Zero;
    f.minus_inf = v.real == -kInfinity;
    f.factor = x != 0 && x != 1 && x != 2 && x != kInfinity;
    return f;
}

Fact fact_of(const Expr& e) {
    if (e.node && e.node->kind == syntax::Kind::Name) {
        Fact f;
        if (e.node->text == "LOG2E") f.base = 1;
        if (e.node->text == "LN2") f.base = -1;
        return f;
    }
    return fact_of(e.constant);
}

/// Two values that are added, compared, or stand for one another.
int FactRules::together(const Fact& a, const Fact& b, const char* how) {
    if (known(a.base) && known(b.base) && a.base != b.base && (a.score || b.score))
        found(std::string(how) + " of a score in base " +
              (a.base == 1   ? "2"
               : a.base == 0 ? "e"
                             : "?") +
              " and one in base " +
              (b.base == 1   ? "2"
               : b.base == 0 ? "e"
                             : "?") +
              "; LOG2E or LN2 is missing or too many");
    return joined(a.base, b.base);
}

Fact::Statistic FactRules::sum_of(const Fact& a, const Fact& b) {
    const bool pa = a.statistic == S::Partial, pb = b.statistic == S::Partial;
    if (pa && pb) return S::Partial;
    if (pa || pb) {
        if ((pa ? b : a).statistic != S::Zero)
            found("a partial row statistic is added to a whole value; every thread that holds a share would add it");
        return S::Partial;
    }
    return joined(a.statistic, b.statistic);
}

void FactRules::whole(const Fact& f, const char* where) {
    if (f.statistic == S::Partial || f.statistic == S::Compared)
        found(std::string("a partial row statistic in ") + where + "; complete(x) comes first");
}

Fact FactRules::elementwise(Op op, const std::vector<Fact>& x) {
    Fact out;
    for (const auto& f : x) {
        out.vote = out.vote || f.vote;
        out.score = out.score || f.score;
        out.masked = out.masked || f.masked;
        out.weight = out.weight || f.weight;
        out.loaded = out.loaded || f.loaded;
    }
    if (out.score) out.loaded = false;
    switch (op) {
    case Op::Add:
    case Op::Sub:
        if ((x[0].masked && x[1].loaded) || (x[1].masked && x[0].loaded))
            found("a masked score is modified again; the mask comes last");
        out.base = together(x[0], x[1], op == Op::Add ? "the sum" : "the difference");
        out.statistic = sum_of(x[0], x[1]);
        return out;
    case Op::Mul:
    case Op::Div:
        if (x[1].statistic == S::Partial && (op == Op::Div || x[0].statistic == S::Partial))
            found("a partial row statistic may only be scaled and added; complete(x) comes first");
        out.base = product(x[0], x[1], op == Op::Mul ? 1 : -1);
        if (x[0].statistic == S::Partial || x[1].statistic == S::Partial) out.statistic = S::Partial;
        if (x[0].statistic == S::Zero || x[1].statistic == S::Zero) out.statistic = S::Zero;
        return out;
    case Op::Neg:
        out.base = x[0].base;
        out.statistic = x[0].statistic;
        out.factor = x[0].factor;
        return out;
    case Op::Max:
    case Op::Min:
        whole(x[0], "a maximum or minimum");
        whole(x[1], "a maximum or minimum");
        out.base = together(x[0], x[1], "the maximum or minimum");
        return out;
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne: {
        together(x[0], x[1], "the comparison");
        Fact test;
        test.vote = out.vote;
        if (x[0].statistic == S::Partial || x[1].statistic == S::Partial) test.statistic = S::Compared;
        return test;
    }
    case Op::Where: {
        if (x[0].statistic == S::Compared) whole(x[0], "a choice");
        Fact chosen = join(x[1], x[2]);
        chosen.base = together(x[1], x[2], "the choice");
        chosen.statistic = sum_of(x[1], x[2]);
        chosen.vote = out.vote;
        chosen.masked = chosen.masked || (x[1].score && x[2].minus_inf) || (x[2].score && x[1].minus_inf);
        return chosen;
    }
    default: break;
    }
    for (const auto& f : x) whole(f, "a function");
    if (x.size() == 1) return function(op, x[0], out);
    out.base = Fact::kUnknown;
    return out;
}

Fact FactRules::function(Op op, const Fact& x, Fact out) {
    if (x.masked && x.score && bends(op)) found("a masked score is modified again; the mask comes last");
    if (op == Op::Exp2 || op == Op::Exp) {
        const int needed = op == Op::Exp2 ? 1 : 0;
        if (x.score && known(x.base) && x.base != needed)
            found(op == Op::Exp2 ? "exp2 of a score that was not multiplied by LOG2E once"
                                 : "exp of a score that was multiplied by LOG2E; exp2 it is");
        if (x.score) {
            Fact weight;
            weight.weight = true;
            weight.vote = x.vote;
            return weight;
        }
    }
    if ((op == Op::Log2 || op == Op::Log) && x.weight) {
        Fact f;
        f.score = true;
        f.base = op == Op::Log2 ? 1 : 0;
        return f;
    }
    if (op == Op::Sigmoid) {
        out.masked = out.score = false;
        out.base = Fact::kConstant;
    } else if (op != Op::Tanh || x.base != 0) {
        out.base = x.base == Fact::kConstant && !x.factor ? Fact::kConstant : Fact::kUnknown;
    } else {
        out.base = 0;
    }
    return out;
}

} // namespace cubridge::ir::cuir
