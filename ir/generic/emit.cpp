// Blocks, names and arithmetic. What reads memory is in read.cpp. SPDX-License-Identifier: Apache-2.0
#include "ir/generic/emit.h"
#include "ir/generic/literal.h"
#include <bit>

namespace cubridge::ir::generic {

const char* type_name(Type t) {
    switch (t) {
    case Type::Bool: return "bool";
    case Type::Int: return "long long";
    case Type::F32: return "float";
    case Type::Real: break;
    }
    return "cb_real";
}

std::string initial(ReduceOp op, Type t) {
    const bool most = op == ReduceOp::Max;
    switch (op) {
    case ReduceOp::Sum: return "0";
    case ReduceOp::Prod: return "1";
    case ReduceOp::Any: return "false";
    case ReduceOp::All: return "true";
    case ReduceOp::Max:
    case ReduceOp::Min: break;
    }
    if (t == Type::Bool) return most ? "false" : "true";
    if (t == Type::Int) return most ? "(-9223372036854775807ll - 1)" : "9223372036854775807ll";
    return most ? "-cb_inf()" : "cb_inf()";
}

std::string combined(ReduceOp op, const std::string& a, const std::string& b) {
    switch (op) {
    case ReduceOp::Sum: return a + " + " + b;
    case ReduceOp::Prod: return a + " * " + b;
    case ReduceOp::Any: return a + " || " + b;
    case ReduceOp::All: return a + " && " + b;
    case ReduceOp::Max: return "cb_max(" + a + ", " + b + ")";
    case ReduceOp::Min: break;
    }
    return "cb_min(" + a + ", " + b + ")";
}

const char* combiner(ReduceOp op) {
    switch (op) {
    case ReduceOp::Sum: return "cb_sum";
    case ReduceOp::Prod: return "cb_prod";
    case ReduceOp::Any: return "cb_any";
    case ReduceOp::All: return "cb_all";
    case ReduceOp::Max: return "cb_most";
    case ReduceOp::Min: break;
    }
    return "cb_least";
}

void Emitter::open(std::uint64_t bits, const std::string& head) {
    Block b;
    b.known = blocks_.back().known | bits;
    b.variable = blocks_.back().variable;
    b.extent = blocks_.back().extent;
    b.head = head; // written at the end: what is hoisted out of the block comes before it
    blocks_.push_back(std::move(b));
}

void Emitter::close() {
    const std::string text = std::move(blocks_.back().text), head = std::move(blocks_.back().head);
    blocks_.pop_back();
    const std::string margin = indent(blocks_.size() - 1);
    blocks_.back().text += margin + head + " {\n" + text + margin + "}\n";
}

void Emitter::line(const std::string& text) {
    blocks_.back().text += indent(blocks_.size() - 1) + text + "\n";
}

void Emitter::variable(int v, const std::string& name, Expr extent) {
    blocks_.back().variable[static_cast<std::size_t>(v)] = name;
    blocks_.back().extent[static_cast<std::size_t>(v)] = extent;
}

void Emitter::loop(int v, Expr extent, const std::string& from, const std::string& by) {
    const std::string name = fresh("x"), end = value(extent);
    open(index_bit(v),
         "for (long long " + name + " = " + from + "; " + name + " < " + end + "; " + name + " += " + by + ")");
    variable(v, name, extent);
}

std::string Emitter::take() {
    return std::move(blocks_.at(0).text);
}

std::size_t Emitter::block_of(std::uint64_t rate) const {
    std::size_t k = 0;
    while (k + 1 < blocks_.size() && (rate & ~blocks_[k].known) != 0) ++k;
    return k;
}

std::string Emitter::index(int v) const {
    return blocks_.back().variable[static_cast<std::size_t>(v)];
}

Expr Emitter::extent_of(Expr index) const {
    return index->kind == Kind::Index ? blocks_.back().extent[static_cast<std::size_t>(index->number)] : nullptr;
}

std::string Emitter::named(const std::string& key, std::uint64_t rate, const char* type,
                           const std::function<std::string()>& text) {
    const std::size_t at = block_of(rate);
    for (std::size_t k = 0; k <= at; ++k)
        if (const auto it = blocks_[k].named.find(key); it != blocks_[k].named.end()) return it->second;
    const std::string what = text(), name = fresh("n");
    blocks_[at].text += indent(at) + "const " + type + " " + name + " = " + what + ";\n";
    blocks_[at].named.emplace(key, name);
    return name;
}

std::string Emitter::declare(Expr e, const std::string& text) {
    const std::size_t at = block_of(program_.rate(e));
    std::string name = fresh("e");
    blocks_[at].text += indent(at) + "const " + type_name(e->type) + " " + name + " = " + text + ";\n";
    blocks_[at].names.emplace(e, name);
    return name;
}

std::string Emitter::value(Expr e) {
    if (e->kind == Kind::Const) return literal(e);
    if (e->kind == Kind::Index) return index(e->number);
    if (e->kind == Kind::Dim && !dims::is_input(e->number)) {
        switch (e->number) {
        case dims::B: return "B";
        case dims::Sq: return "Sq";
        case dims::Sk: return "Sk";
        case kUnits: return "U";
        default: return "U0";
        }
    }
    for (const Block& b : blocks_)
        if (const auto it = b.names.find(e); it != b.names.end()) return it->second;
    if (e->kind == Kind::Reduce) return inner_loop(e);
    return declare(e, compute(e));
}

std::string Emitter::compute(Expr e) {
    const auto arg = [&](std::size_t k) { return value(e->args[k]); };
    const auto all = [&](const char* between) {
        std::string out;
        for (const Expr a : e->args) out += (out.empty() ? "" : between) + value(a);
        return out;
    };
    switch (e->kind) {
    case Kind::Dim: {
        const int slot = program_.prepared.slot.at(static_cast<std::size_t>(dims::input(e->number)));
        if (slot < 0) fail("unsupported", "a size of an input that is not there");
        return "a.operand[" + std::to_string(slot) + "].size[" + std::to_string(dims::axis(e->number)) + "]";
    }
    case Kind::Arg: return e->number >= kStep ? step(e) : argument(e);
    case Kind::Load: return e->number >= kStep ? step(e) : e->number < 3 ? tensor(e) : operand(e);
    case Kind::Table: return constant_table(e);
    case Kind::Sum: return e->type == Type::Int ? integer_sum(e) : real_sum(e);
    case Kind::Product: return product(e);
    case Kind::FloorDiv: return "cb_floordiv(" + all(", ") + ")";
    case Kind::Mod: return "cb_mod(" + all(", ") + ")";
    case Kind::Min:
    case Kind::Max: {
        std::string out = arg(0);
        for (std::size_t k = 1; k < e->args.size(); ++k)
            out = std::string(e->kind == Kind::Min ? "cb_min" : "cb_max") + "<" + type_name(e->type) + ">(" + out +
                  ", " + arg(k) + ")";
        return out;
    }
    case Kind::Fn:
    case Kind::F32Fn: return function(e);
    case Kind::Cmp: {
        const char* op = e->op == Op::Lt ? " < " : e->op == Op::Le ? " <= " : " == ";
        const std::string left = arg(0);
        return left + op + (e->args.size() == 1 ? "0" : arg(1));
    }
    case Kind::And: return all(" & ");
    case Kind::Or: return all(" | ");
    case Kind::Not: return "!" + arg(0);
    case Kind::Select: {
        const std::string c = arg(0), x = arg(1), y = arg(2);
        return c + " ? " + x + " : " + y;
    }
    case Kind::Cast: return cast(e);
    case Kind::Const:
    case Kind::Index:
    case Kind::Bound:
    case Kind::Reduce: break;
    }
    fail("unsupported", "an expression without a value: " + debug_text(e));
}

std::string Emitter::integer_sum(Expr e) {
    std::string out;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const std::int64_t c = e->icoef[k];
        const std::string x = value(e->args[k]);
        out += c == -1 ? (out.empty() ? "-" : " - ") : (out.empty() ? "" : " + ");
        out += c == 1 || c == -1 ? x : integer_literal(c) + " * " + x;
    }
    if (e->integer != 0) out += " + " + integer_literal(e->integer);
    return out;
}

std::string Emitter::real_sum(Expr e) {
    std::string out;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const double c = e->rcoef[k];
        const std::string x = value(e->args[k]);
        out += c == -1 ? (out.empty() ? "-" : " - ") : (out.empty() ? "" : " + ");
        out += c == 1 || c == -1 ? x : real_literal(c) + " * " + x;
    }
    if (e->real != 0) out += " + " + real_literal(e->real);
    return out;
}

std::string Emitter::product(Expr e) {
    std::string over, under;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const std::int64_t num = e->num[k] < 0 ? -e->num[k] : e->num[k], den = e->den[k];
        const char* real = program_.prepared.options.f64 ? "" : "f";
        std::string x = value(e->args[k]);
        if (den == 2) x = std::string("sqrt") + real + "(" + x + ")";
        if (den > 2) {
            x = std::string("pow") + real + "(" + x + ", " +
                real_literal(static_cast<double>(num) / static_cast<double>(den)) + ")";
        } else if (num > 1) {
            x = std::string("cb_power<") + type_name(e->type) + ">(" + x + ", " + std::to_string(num) + ")";
        }
        // One division after another: the product of divisors may overflow where the quotient doesn't.
        if (e->num[k] < 0)
            under += " / " + x;
        else
            over += (over.empty() ? "" : " * ") + x;
    }
    return (over.empty() ? "cb_real(1)" : over) + under;
}

std::string Emitter::function(Expr e) {
    std::vector<std::string> x;
    for (const Expr a : e->args) x.push_back(value(a));
    const OpInfo& op = info(e->op);
    const bool f32 = e->kind == Kind::F32Fn;
    if (f32) { // exactly as written, operation by operation: never contracted
        switch (e->op) {
        case Op::Add: return "__fadd_rn(" + x[0] + ", " + x[1] + ")";
        case Op::Sub: return "__fadd_rn(" + x[0] + ", -" + x[1] + ")";
        case Op::Mul: return "__fmul_rn(" + x[0] + ", " + x[1] + ")";
        case Op::Div: return "__fdiv_rn(" + x[0] + ", " + x[1] + ")";
        case Op::Sqrt: return "__fsqrt_rn(" + x[0] + ")";
        case Op::Rsqrt: return "__fdiv_rn(1.0f, __fsqrt_rn(" + x[0] + "))";
        case Op::Pow: return "cb_pow_rn(" + x[0] + ", " + x[1] + ")";
        default: break;
        }
    }
    // Where CUDA's float function may be off by a bit, float32 as written is the float64 function rounded once.
    const bool wide = f32 && op.ulp > 0;
    std::string text = f32 && !wide ? op.cuda_f32 : wide || program_.prepared.options.f64 ? op.cuda_f64 : op.cuda_f32;
    for (std::size_t k = 0; k < x.size(); ++k) {
        const std::string mark = "{" + std::to_string(k) + "}";
        const std::string with = wide ? "(double)" + x[k] : x[k];
        for (auto at = text.find(mark); at != text.npos; at = text.find(mark, at + with.size()))
            text.replace(at, mark.size(), with);
    }
    return wide ? "(float)(" + text + ")" : text;
}

std::string Emitter::cast(Expr e) {
    const std::string x = value(e->args[0]);
    const Type from = e->args[0]->type;
    if (e->type == Type::Int && from != Type::Bool) return "cb_trunc(" + x + ")";
    return std::string("(") + type_name(e->type) + ")" + x;
}

/// A reduction that no table holds: a loop in the block where its surroundings are known.
std::string Emitter::inner_loop(Expr e) {
    const std::size_t at = block_of(program_.rate(e));
    std::vector<Block> above(std::make_move_iterator(blocks_.begin() + static_cast<std::ptrdiff_t>(at) + 1),
                             std::make_move_iterator(blocks_.end()));
    blocks_.resize(at + 1);
    const std::uint64_t taken = blocks_.back().known | e->free | 0xf;
    const int v = std::countr_one(taken);
    if (v >= kMaxIndex) fail("unsupported", "reductions are nested more than 10 deep");
    const std::string name = fresh("r");
    line(std::string(type_name(e->type)) + " " + name + " = " + initial(e->reduce, e->type) + ";");
    loop(v, e->args[1], "0", "1");
    const std::string x = value(program_.prepared.pool->open(e, program_.prepared.pool->index(v)));
    line(name + " = " + combined(e->reduce, name, x) + ";");
    close();
    blocks_.back().names.emplace(e, name);
    for (auto& b : above) blocks_.push_back(std::move(b));
    return name;
}

} // namespace cubridge::ir::generic
