// Statements that open a block: loops, conditions, defs. A new role has no rule.
// SPDX-License-Identifier: Apache-2.0
#include "ir/lower/place.h"
#include "ir/lower/rules.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;
using K = Statement::Kind;

namespace {

bool is_fixed(const Node& bound, const Scope& scope) {
    const auto names = names_in(bound);
    return std::all_of(names.begin(), names.end(), [&](const auto& n) {
        const Variable* v = scope.find(n);
        return v == nullptr || v->writes <= 1;
    });
}

Region range(const Statement& s, const Facts& f) {
    const Node& call = *s.node->items[1];
    const Expressions x(*f.scope);
    if (s.node->items[0]->kind != Kind::Name || call.items.size() < 2 || call.items.size() > 4)
        fail("no_rule", "for k in range(...)", s.node->span);
    const std::string k = s.node->items[0]->text;
    const bool two = call.items.size() > 2;
    const Node& bound = *call.items[two ? 2 : 1];
    std::string step = "++" + k, begin = two ? x.print(*call.items[1], Elem::Int) : "0";
    if (call.items.size() == 4) {
        if (!x.type(*call.items[3]).natural) fail("no_rule", "a loop counts up", call.items[3]->span);
        step = k + " += " + x.print(*call.items[3], Elem::Int);
    }
    std::string end = x.print(bound, Elem::Int), extra;
    if (!is_fixed(bound, *f.scope)) {
        extra = ", " + k + "_end = " + end;
        end = k + "_end";
    }
    // Of a map: loads of several turns are in flight at once.
    const std::string unroll = f.kernel->is_map() ? "_Pragma(\"unroll 8\") " : "";
    return {"loop",
            {unroll + "for (int " + k + " = " + begin + extra + "; " + k + " < " + end + "; " + step + ") {"},
            {"}"}};
}

/// Work items: the class `Items` of the preamble knows their order.
Region bind(const Statement& s, const Facts& f) {
    const bool draws = loop_over(s) == "draw", numbered = callee(*s.node->items[1]) == "enumerate";
    Node call = numbered ? *s.node->items[1]->items[1] : *s.node->items[1];
    auto targets = parts(s.node->items[0]);
    std::string number, begin, ticket;
    if (numbered) {
        if (targets.size() != 2 || targets[0]->kind != Kind::Name || f.scope->find(targets[0]->text)->writes > 1)
            fail("no_rule", "for w, (b, h, m) in enumerate(...), w counts one loop of its role", call.span);
        number = "++" + targets[0]->text;
        begin = "int " + targets[0]->text + " = 0;";
        targets = parts(targets[1]);
    }
    if (draws) {
        if (call.items.size() < 2 || call.items[1]->kind != Kind::Name ||
            Expressions(*f.scope).type(*call.items[1]).form != Form::Counter)
            fail("no_rule", "draw(ticket, ...), which is a parameter of the kernel", call.span);
        ticket = call.items[1]->text + ", ";
        call.items.erase(call.items.begin() + 1);
    }
    const auto is = [](const Node& n, const char* text) { return syntax::print(n) == text; };
    if (targets.size() != 3 || call.items.size() != 4 || !is(*call.items[1], "B") || callee(*call.items[3]) != "cdiv" ||
        call.items[3]->items.size() != 3 || !is(*call.items[3]->items[1], "Sq") || call.keywords.size() != 1 ||
        call.keywords[0].name != "order" || call.keywords[0].value->kind != Kind::String)
        fail("no_rule", "for b, h, m in bind(B, Hq, cdiv(Sq, BM), order=...)", call.span);
    Region out{"loop", {}, {"}"}};
    for (std::size_t k = 0; k < 3; ++k) // the opening of the kernel declares them: operands are read of request b
        if (!is(*targets[k], k == 0 ? "b" : k == 1 ? "h" : "m"))
            fail("no_rule", "an item is b, h, m", s.node->items[0]->span);
    const Expressions x(*f.scope);
    const std::string items = draws ? "queue" : "items";
    if (numbered) out.lines.push_back(begin);
    out.lines.push_back(std::string("for (") + (draws ? "Draw<D + Dv> queue(args, " : "Items items(args, ") + ticket +
                        x.print(*call.items[3]->items[2], Elem::Int) + ", " + call.keywords[0].value->text +
                        (is(*call.items[2], "Hq") ? "" : ", " + x.print(*call.items[2], Elem::Int)) + "); " + items +
                        ".next(b, h, m, Sq, Sk);" + (numbered ? " " + number : "") + ") {");
    return out;
}

/// One thread an element, the last index fastest.
Region each(const Statement& s, const Facts& f) {
    const Node& call = *s.node->items[1];
    const auto targets = parts(s.node->items[0]);
    const std::size_t rank = targets.size();
    if (!f.kernel->is_map()) fail("no_rule", "each() is for @map kernels", call.span);
    if (rank < 1 || rank > 4 || call.items.size() != rank + 1) fail("no_rule", "for i, j in each(A, B)", call.span);
    const Expressions x(*f.scope);
    Region out{"loop", {}, {"}"}};
    std::vector<std::string> taken = names_in(call);
    for (const auto& [name, variable] : f.scope->variables) taken.push_back(name);
    const std::string at = fresh("at", taken);
    // Extents are those of the longest request; what stands under the loop has the lengths of its own.
    std::string extents, count, rest = at;
    Lines indices;
    for (std::size_t k = 0; k < rank; ++k) {
        taken.push_back(fresh("extent", taken));
        const std::string extent = taken.back();
        extents += (k == 0 ? "const int " : ", ") + extent + " = " + x.print(*call.items[k + 1], Elem::Int);
        count += (k == 0 ? "(long long)" : " * ") + extent;
    }
    bool requests = false;
    for (std::size_t k = rank; k-- > 0;) {
        const Node& size = *call.items[k + 1];
        const std::string extent = taken[taken.size() - rank + k], name = targets[k]->text;
        std::string index = "(int)(" + rest + (k == 0 ? "" : " % " + extent) + ")";
        // Heads are counted from the model's first.
        if (size.kind == Kind::Name && size.text == "Hq") index = "args.head_begin + " + index;
        if (size.kind == Kind::Name && size.text == "Hk") index = "args.head_begin / (Hq / Hk) + " + index;
        requests = requests || name == "b"; // which the kernel declares: operands are read of request b
        indices.push_back((name == "b" ? "    " : "    const int ") + name + " = " + index + ";");
        rest += " / " + extent;
    }
    out.lines = {extents + ";", "for (long long " + at + " = (long long)blockIdx.x * blockDim.x + threadIdx.x; " + at +
                                    " < " + count + "; " + at + " += (long long)gridDim.x * blockDim.x) {"};
    if (requests) indices.insert(indices.begin(), "    Sk = key_length(args, b);");
    out.lines.insert(out.lines.end(), indices.rbegin(), indices.rend());
    return out;
}

} // namespace

Region print_opening(const Statement& s, const Analysis& analysis) {
    const Facts& f = analysis.of(s);
    Region out{"control", {}, {"}"}};
    switch (s.kind) {
    case K::Def: {
        const Def& d = *f.scope->find_def(s.name);
        const bool scalar = d.by_value && d.types[0].form == Form::Scalar;
        return {"def",
                {"auto " + s.name + " = [&](" + d.signature() + ")" +
                 (scalar ? std::string(" -> ") + c_name(d.types[0].elem) : "") + " {"},
                {"};"}};
    }
    case K::For: {
        const std::string over = callee(*s.node->items[1]);
        out = over == "range" ? range(s, f) : over == "each" ? each(s, f) : bind(s, f);
        break;
    }
    case K::While:
    case K::If: {
        Expressions x(*f.scope);
        if (s.kind == K::While && f.vote >= 0)
            fail("no_rule", "a vote is no condition of a loop", s.node->span, "give it a name in the loop");
        print_votes(out.lines, x, *s.node->items[0], f);
        out.lines.push_back(std::string(s.kind == K::If ? "if (" : "while (") + x.print(*s.node->items[0], Elem::Bool) +
                            ") {");
        break;
    }
    case K::Else: out.lines.push_back("else {"); break;
    default: fail("no_rule", "a role is not made by a rule", s.node->span);
    }
    Lines before;
    print_declarations(before, f.before);
    out.lines.insert(out.lines.begin(), before.begin(), before.end());
    return out;
}

} // namespace cubridge::ir::lower
