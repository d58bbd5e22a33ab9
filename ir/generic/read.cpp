// Reads of tensors, operands, constant tables and steps, each index clamped unless it can't leave its axis; and launch
// codes as CUDA text. SPDX-License-Identifier: Apache-2.0
#include "ir/generic/emit.h"
#include "ir/generic/literal.h"
#include "ir/generic/prelude.h"

namespace cubridge::ir::generic {
namespace {

std::string as(Type type, const std::string& x) {
    return type == Type::Bool ? "(" + x + " != 0)" : std::string("(") + type_name(type) + ")" + x;
}

std::string clamped(const std::string& index, const std::string& size) {
    return "cb_clamp(" + index + ", " + size + ")";
}

} // namespace

std::string code_text(const launch::Code& code) {
    using Do = launch::Code::Do;
    using launch::Size;
    std::vector<std::string> stack;
    for (const auto& s : code.steps) {
        if (s.what == Do::Push) {
            stack.push_back(integer_literal(s.value));
        } else if (s.what == Do::PushSize) {
            if (static_cast<Size>(s.value) == Size::SmCount)
                fail("unsupported", "a kernel that counts multiprocessors");
            stack.push_back(std::string("(long long)a.") + launch::name(static_cast<Size>(s.value)));
        } else if (s.what == Do::PushOperand) {
            stack.push_back("a.operand[" + std::to_string(s.value / 4) + "].size[" + std::to_string(s.value % 4) + "]");
        } else {
            const std::string b = std::move(stack.back());
            stack.pop_back();
            std::string& x = stack.back();
            switch (s.what) {
            case Do::Add: x = "(" + x + " + " + b + ")"; break;
            case Do::Sub: x = "(" + x + " - " + b + ")"; break;
            case Do::Mul: x = x + " * " + b; break;
            case Do::FloorDiv: x = "cb_floordiv(" + x + ", " + b + ")"; break;
            case Do::CeilDiv: x = "cb_ceildiv(" + x + ", " + b + ")"; break;
            case Do::Mod: x = "cb_mod(" + x + ", " + b + ")"; break;
            case Do::Min: x = "cb_min<long long>(" + x + ", " + b + ")"; break;
            case Do::Max: x = "cb_max<long long>(" + x + ", " + b + ")"; break;
            default: x = "cb_roundup(" + x + ", " + b + ")";
            }
        }
    }
    return stack.at(0);
}

std::string Emitter::q_offset() {
    return program_.prepared.request.layout == Request::Layout::Dense ? "b * a.q.outer" : "a.cu_seqlens_q[b] * a.q.row";
}

/// Index(1) counts the heads of a row, or of the table being computed; whether `index`, made of it, is below `heads`.
bool Emitter::head_in_range(Expr index, std::int64_t heads) const {
    std::int64_t divisor = head_divisor_;
    if (index->kind == Kind::FloorDiv && is_const(index->args[1])) {
        divisor *= index->args[1]->integer;
        index = index->args[0];
    }
    return index->kind == Kind::Index && index->number == 1 && divisor > 0 &&
           program_.prepared.heads.out <= heads * divisor && (heads * divisor) % program_.prepared.heads.out == 0;
}

std::string Emitter::tensor(Expr e) {
    const Request& r = program_.prepared.request;
    const Heads& heads = program_.prepared.heads;
    const bool is_q = e->number == 0;
    const std::int64_t count = is_q ? heads.q : e->number == 1 ? heads.k : heads.v;
    const std::string t = is_q ? "a.q" : e->number == 1 ? "a.k" : "a.v";
    const std::string length = is_q ? "Sq" : "Sk";
    const std::uint64_t request = index_bit(0);
    const Expr *at = e->args.data(), b = at[0], h = at[1], row = at[2], column = at[3];
    const bool own = b->kind == Kind::Index && b->number == 0;
    const bool paged = !is_q && r.layout == Request::Layout::Paged;
    if (!own && r.layout != Request::Layout::Dense) fail("unsupported", "a request that reads another one's rows");

    const auto key = [&](const char* what) { return t + what + std::to_string(b->id) + "," + std::to_string(h->id); };
    std::uint64_t rate = request | program_.rate(b) | program_.rate(h);
    const auto head = [&] {
        const std::string x = value(h);
        return head_in_range(h, count) ? x : clamped(x, integer_literal(count) + " * U");
    };
    std::string offset = named(key(".base"), rate, "long long", [&] {
        const std::string across = head() + " * " + t + ".head";
        if (paged) return across;
        if (r.layout == Request::Layout::Dense)
            return (own ? index(0) : clamped(value(b), "B")) + " * " + t + ".outer + " + across;
        return std::string(is_q ? "a.cu_seqlens_q[" : "a.cu_seqlens_k[") + index(0) + "] * " + t + ".row + " + across;
    });
    const Expr extent = extent_of(row);
    const int dim = is_q ? dims::Sq : dims::Sk;
    const bool row_safe = (is_q && row->kind == Kind::Index && row->number == 2) ||
                          (extent != nullptr && extent->kind == Kind::Dim && extent->number == dim);
    rate |= program_.rate(row);
    offset = named(key(".row") + "," + std::to_string(row->id), rate, "long long", [&] {
        const std::string x = row_safe ? value(row) : clamped(value(row), length);
        if (paged)
            return offset + " + (" + length + " > 0 ? cb_paged(a, " + t + ", " + index(0) + ", " + x + ", " +
                   std::to_string(r.page_size) + ") : 0)";
        return offset + " + " + x + " * " + t + ".row";
    });
    const Expr columns = extent_of(column);
    const int width = e->number == 2 ? r.head_dim_v : r.head_dim;
    const bool column_safe = (columns != nullptr && is_const(columns) && columns->integer <= width) ||
                             (is_const(column) && column->integer >= 0 && column->integer < width);
    const std::string c = column_safe ? value(column) : clamped(value(column), integer_literal(width));
    std::string text = as(e->type, "cb_get_" + element(is_q ? r.q_dtype : r.kv_dtype) + "(" + t + ".data, " + offset +
                                       " + " + c + ")");
    if (!row_safe) text = "(" + length + " > 0 ? " + text + " : 0)";
    if (is_q) return text;
    const std::string scale = t + "_scale";
    const std::string factor = named(key("_scale"), request | program_.rate(b) | program_.rate(h), "float", [&] {
        const std::string x = head();
        return scale + ".data ? " + scale + ".data[" + (own ? index(0) : clamped(value(b), "B")) + " * " + scale +
               ".request + " + x + " * " + scale + ".head] : 1.0f";
    });
    return text + " * " + factor;
}

std::string Emitter::request_of_operand(int slot) {
    const std::string op = "a.operand[" + std::to_string(slot) + "]";
    return named(op + ".begin", index_bit(0), "long long", [&] {
        return op + ".begin ? (long long)" + op + ".begin[" + index(0) + "] : " + index(0) + " * " + op +
               ".per_request";
    });
}

std::string Emitter::operand(Expr e) {
    const Prepared& p = program_.prepared;
    const int slot = p.slot.at(static_cast<std::size_t>(e->number));
    if (slot < 0) fail("unsupported", "an input that is not there is read");
    const std::string op = "a.operand[" + std::to_string(slot) + "]";
    const std::string some = named(op + ".some", 0, "bool", [&] {
        std::string out;
        for (std::size_t k = 0; k < e->args.size(); ++k)
            out += (k == 0 ? "" : " && ") + op + ".size[" + std::to_string(k) + "] > 0";
        return out;
    });
    std::string offset = request_of_operand(slot);
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const std::string axis = std::to_string(k);
        const std::string x =
            named(op + "," + axis + "," + std::to_string(e->args[k]->id), program_.rate(e->args[k]), "long long", [&] {
                return clamped(value(e->args[k]), op + ".size[" + axis + "]") + " * " + op + ".stride[" + axis + "]";
            });
        offset += " + " + x;
    }
    const DType type = p.inputs[static_cast<std::size_t>(e->number)].dtype;
    return some + " ? " + as(e->type, "cb_get_" + element(type) + "(" + op + ".data, " + offset + ")") + " : 0";
}

std::string Emitter::argument(Expr e) {
    const Prepared& p = program_.prepared;
    const auto x = static_cast<std::size_t>(e->number);
    const int slot = p.slot.at(x);
    if (slot < 0) fail("unsupported", "an input that is not there is read");
    const std::string op = "a.operand[" + std::to_string(slot) + "]";
    const bool bound = p.inputs[x].fate == Input::Fate::Bound;
    const std::string at = bound ? "0" : request_of_operand(slot);
    return op + ".data ? " + as(e->type, "cb_get_" + element(p.inputs[x].dtype) + "(" + op + ".data, " + at + ")") +
           " : " + as(e->type, op + ".value");
}

std::string Emitter::constant_table(Expr e) {
    const ConstTable& t = program_.prepared.pool->table(e->number);
    std::string offset;
    for (std::size_t k = 0; k < e->args.size(); ++k) {
        const std::string x = clamped(value(e->args[k]), integer_literal(t.shape[k]));
        offset = k == 0 ? x : "(" + offset + ") * " + integer_literal(t.shape[k]) + " + " + x;
    }
    return "cb_table" + std::to_string(e->number) + "[" + offset + "]";
}

std::string Emitter::element_of(const Step& s, int number, const std::vector<std::string>& at) {
    const std::string id = std::to_string(number);
    if (s.per_row && at.empty()) return "s" + id;
    std::string offset;
    const auto axis = [&](const std::string& size, const std::string& x) {
        offset = offset.empty() ? x : "(" + offset + ") * " + size + " + " + x;
    };
    if (s.over_request) axis("", index(0));
    if (s.over_head) {
        const std::int64_t ratio = s.head_divisor / head_divisor_;
        axis("t" + id + "_h", ratio == 1 ? index(1) : index(1) + " / " + integer_literal(ratio));
    }
    for (std::size_t k = 0; k < at.size(); ++k) axis("t" + id + "_" + std::to_string(k), at[k]);
    return "t" + id + "[" + (offset.empty() ? "0" : offset) + "]";
}

std::string Emitter::step(Expr e) {
    std::vector<std::string> at;
    for (const Expr a : e->args) at.push_back(value(a));
    const int number = e->number - kStep;
    return element_of(program_.steps[static_cast<std::size_t>(number)], number, at);
}

} // namespace cubridge::ir::generic
