// Expressions for people. SPDX-License-Identifier: Apache-2.0
#include "ir/expr/expr.h"
#include <fmt/format.h>

namespace cubridge::ir {

namespace {

std::string list(Expr e) {
    std::string out;
    for (const Expr a : e->args) out += (out.empty() ? "" : ", ") + debug_text(a);
    return out;
}

const char* reduce_name(ReduceOp op) {
    constexpr const char* names[] = {"sum", "max", "min", "any", "all", "prod"};
    return names[static_cast<int>(op)];
}

} // namespace

std::string debug_text(Expr e) {
    switch (e->kind) {
    case Kind::Const:
        if (e->type == Type::Bool) return e->integer != 0 ? "true" : "false";
        return e->type == Type::Int ? std::to_string(e->integer) : fmt::format("{}", e->real);
    case Kind::Index: return fmt::format("i{}", e->number);
    case Kind::Bound: return fmt::format("r{}", e->number);
    case Kind::Dim: return dims::name(e->number);
    case Kind::Arg: return fmt::format("x{}", e->number);
    case Kind::Load: return fmt::format("x{}[{}]", e->number, list(e));
    case Kind::Table: return fmt::format("t{}[{}]", e->number, list(e));
    case Kind::Sum: {
        std::string out = "(";
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            const double c = e->type == Type::Int ? static_cast<double>(e->icoef[k]) : e->rcoef[k];
            if (k) out += " + ";
            if (c != 1) out += fmt::format("{}*", c);
            out += debug_text(e->args[k]);
        }
        const double c = e->type == Type::Int ? static_cast<double>(e->integer) : e->real;
        if (c != 0) out += fmt::format(" + {}", c);
        return out + ")";
    }
    case Kind::Product: {
        std::string out = "(";
        for (std::size_t k = 0; k < e->args.size(); ++k) {
            if (k) out += " * ";
            out += debug_text(e->args[k]);
            if (e->den[k] != 1)
                out += fmt::format("^({}/{})", e->num[k], e->den[k]);
            else if (e->num[k] != 1)
                out += fmt::format("^{}", e->num[k]);
        }
        return out + ")";
    }
    case Kind::FloorDiv: return "(" + debug_text(e->args[0]) + " // " + debug_text(e->args[1]) + ")";
    case Kind::Mod: return "(" + debug_text(e->args[0]) + " % " + debug_text(e->args[1]) + ")";
    case Kind::Min: return "min(" + list(e) + ")";
    case Kind::Max: return "max(" + list(e) + ")";
    case Kind::Fn: return fmt::format("{}({})", info(e->op).name, list(e));
    case Kind::F32Fn: return fmt::format("f32.{}({})", info(e->op).name, list(e));
    case Kind::Cmp: {
        const char* sign = e->op == Op::Lt ? "<" : e->op == Op::Le ? "<=" : "==";
        return fmt::format("({} {} {})", debug_text(e->args[0]), sign,
                           e->args.size() == 1 ? "0" : debug_text(e->args[1]));
    }
    case Kind::And: return "and(" + list(e) + ")";
    case Kind::Or: return "or(" + list(e) + ")";
    case Kind::Not: return "not(" + list(e) + ")";
    case Kind::Select: return "select(" + list(e) + ")";
    case Kind::Cast: {
        constexpr const char* names[] = {"bool", "int", "f32", "real"};
        return fmt::format("{}({})", names[static_cast<int>(e->type)], list(e));
    }
    case Kind::Reduce:
        return fmt::format("{}[r{} < {}]({})", reduce_name(e->reduce), e->number, debug_text(e->args[1]),
                           debug_text(e->args[0]));
    }
    return "?";
}

} // namespace cubridge::ir
