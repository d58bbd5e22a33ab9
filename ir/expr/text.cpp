// Expressions for people. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/expr.h"
#include <fmt/format.h>

namespace cubridge::ir {

namespace {

constexpr int kMaxNodes = 400; // a shared node is printed at each use: people need no more, memory could not hold more

std::string write(Expr e, int& left);

std::string list(Expr e, int& left) {
    std::string out;
    for (const Expr a : e->args) {
        out += (out.empty() ? "" : ", ") + write(a, left);
        if (left < 0) break;
    }
    return out;
}

const char* reduce_name(ReduceOp op) {
    constexpr const char* names[] = {"sum", "max", "min", "any", "all", "prod"};
    return names[static_cast<int>(op)];
}

std::string write(Expr e, int& left) {
    if (--left < 0) return "...";
    switch (e->kind) {
    case Kind::Const:
        if (e->type == Type::Bool) return e->integer != 0 ? "true" : "false";
        return e->type == Type::Int ? std::to_string(e->integer) : fmt::format("{}", e->real);
    case Kind::Index: return fmt::format("i{}", e->number);
    case Kind::Bound: return fmt::format("r{}", e->number);
    case Kind::Dim: return dims::name(e->number);
    case Kind::Arg: return fmt::format("x{}", e->number);
    case Kind::Load: return fmt::format("x{}[{}]", e->number, list(e, left));
    case Kind::Table: return fmt::format("t{}[{}]", e->number, list(e, left));
    case Kind::Sum: {
        std::string out = "(";
        for (std::size_t k = 0; k < e->args.size() && left >= 0; ++k) {
            const double c = e->type == Type::Int ? static_cast<double>(e->icoef[k]) : e->rcoef[k];
            if (k) out += " + ";
            if (c != 1) out += fmt::format("{}*", c);
            out += write(e->args[k], left);
        }
        const double c = e->type == Type::Int ? static_cast<double>(e->integer) : e->real;
        if (c != 0) out += fmt::format(" + {}", c);
        return out + ")";
    }
    case Kind::Product: {
        std::string out = "(";
        for (std::size_t k = 0; k < e->args.size() && left >= 0; ++k) {
            if (k) out += " * ";
            out += write(e->args[k], left);
            if (e->den[k] != 1)
                out += fmt::format("^({}/{})", e->num[k], e->den[k]);
            else if (e->num[k] != 1)
                out += fmt::format("^{}", e->num[k]);
        }
        return out + ")";
    }
    case Kind::FloorDiv: return "(" + write(e->args[0], left) + " // " + write(e->args[1], left) + ")";
    case Kind::Mod: return "(" + write(e->args[0], left) + " % " + write(e->args[1], left) + ")";
    case Kind::Min: return "min(" + list(e, left) + ")";
    case Kind::Max: return "max(" + list(e, left) + ")";
    case Kind::Fn: return fmt::format("{}({})", info(e->op).name, list(e, left));
    case Kind::F32Fn: return fmt::format("f32.{}({})", info(e->op).name, list(e, left));
    case Kind::Cmp: {
        const char* sign = e->op == Op::Lt ? "<" : e->op == Op::Le ? "<=" : "==";
        return fmt::format("({} {} {})", write(e->args[0], left), sign,
                           e->args.size() == 1 ? "0" : write(e->args[1], left));
    }
    case Kind::And: return "and(" + list(e, left) + ")";
    case Kind::Or: return "or(" + list(e, left) + ")";
    case Kind::Not: return "not(" + list(e, left) + ")";
    case Kind::Select: return "select(" + list(e, left) + ")";
    case Kind::Cast: {
        constexpr const char* names[] = {"bool", "int", "f32", "real"};
        return fmt::format("{}({})", names[static_cast<int>(e->type)], list(e, left));
    }
    case Kind::Reduce:
        return fmt::format("{}[r{} < {}]({})", reduce_name(e->reduce), e->number, write(e->args[1], left),
                           write(e->args[0], left));
    }
    return "?";
}

} // namespace

std::string debug_text(Expr e) {
    int left = kMaxNodes;
    return write(e, left);
}

} // namespace cubridge::ir
