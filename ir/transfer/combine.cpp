// The output of several attentions: an elementwise kernel after those of the parts. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/probe.h"
#include "ir/transfer/rules.h"
#include "ir/transfer/tables.h"
#include <cmath>

namespace cubridge::ir::transfer {
namespace {

bool is_lse(Expr e) {
    return e->kind == Kind::Load && e->number >= kLse && e->number < kLog2e;
}

/// What adding a number to every LSE does to a value.
enum class Shift { Nothing, Itself, Other };
Shift under_shift(const ExprPool& pool, Expr e) {
    const double by = 0.75;
    bool nothing = true, itself = true;
    for (int trial = 1; trial <= 3; ++trial) {
        const auto at = [&](double shift) {
            return probe(pool, e, [&](int n) {
                return 0.3 + 0.37 * trial * (1 + n % 7) + (n >= kLse && n < kLog2e ? shift : 0);
            });
        };
        const double d = at(by) - at(0);
        nothing = nothing && std::abs(d) < 1e-9;
        itself = itself && std::abs(d - by) < 1e-9;
    }
    return nothing ? Shift::Nothing : itself ? Shift::Itself : Shift::Other;
}

} // namespace

void combine(Launch& l, const std::vector<std::string>& outputs, const std::vector<std::string>& lses) {
    ExprPool& pool = l.pool;
    const bool store = l.stores_lse;
    if (store && !l.v.lse)
        refuse("an LSE is asked for, and the text of several attentions returns none", "ask for no LSE");
    Map map(l, "combine");
    map.writer.index = {{axis::b, name("b")}, {axis::h, name("h")}, {axis::i, name("i")}, {axis::d, name("d")}};
    const bool reads_lse = contains(l.v.out, is_lse) || (store && contains(l.v.lse, is_lse));
    std::string most;
    if (reads_lse) { // exp(lse) may overflow: relative to the largest, where that changes nothing
        const Shift out = under_shift(pool, l.v.out), of_lse = store ? under_shift(pool, l.v.lse) : Shift::Itself;
        if (out != Shift::Nothing || of_lse != Shift::Itself)
            refuse("the parts' LSE enter the output by more than their differences");
        std::string all;
        for (const auto& n : lses) all = all.empty() ? n + "[b, h, i]" : "maximum(" + all + ", " + n + "[b, h, i])";
        most = l.fresh("most");
        const std::string top = l.fresh("top");
        map.add(top + " = " + all);
        map.add(most + " = where(" + top + " == -inf, 0.0, " + top + ")");
    }
    map.leaf = [&](Expr e) -> NodePtr {
        if (is_lse(e)) return parse(lses.at(static_cast<std::size_t>(e->number - kLse)) + "[b, h, i] - " + most);
        if (e->kind != Kind::Load || e->number < kOutput || e->number >= kLse) return nullptr;
        Nodes at;
        for (const Expr a : e->args) at.push_back(map.writer.write(a));
        return item(outputs.at(static_cast<std::size_t>(e->number - kOutput)), std::move(at));
    };
    map.add("Out[b, h, i, d] = " + text(map.write(l.v.out)));
    const NodePtr heads = map.writer.write(l.v.heads);
    const std::string h = text(heads);
    std::vector<cuir::Statement> params{param("Out", parse("elem[B, " + h + ", Sq, Dv]"))};
    if (store) {
        params.push_back(param("Lse", parse("f32[B, " + h + ", Sq]")));
        const std::string value = text(map.writer.write(l.v.lse));
        const bool log2 = l.target.request.lse == Request::Lse::Log2;
        const std::string sum = most.empty() ? value : most + " + " + value;
        map.open("if d == 0:", [&] { map.add("Lse[b, h, i] = " + (log2 ? "(" + sum + ") * LOG2E" : sum)); });
    }
    set_constant(map.kernel(), "Dv", integer(l.head_dim_v));
    set_constant(map.kernel(), "elem", name(short_name(l.target.request.o_dtype)));
    map.finish({"b", "h", "i", "d"}, {name("B"), heads, name("Sq"), name("Dv")}, params);
    l.applied("parts combined by a map kernel");
}

} // namespace cubridge::ir::transfer
