// Statements that move data or synchronise, from their operands. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/agents.h"
#include "ir/lower/rules.h"

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;

namespace {

/// "Sk": how many rows the tensor of a slice has.
std::string rows_of(const Node& slice, const Scope& scope) {
    const Type& t = scope.find(slice.items[0]->text)->type;
    const auto axes = parts(slice.items[1]);
    if (axes.size() > t.extents.size()) fail("no_rule", "more indices than the tensor has axes", slice.span);
    if (t.form == Form::Operand) return slice.items[0]->text + ".size(" + std::to_string(axes.size() - 1) + ")";
    return t.extents[axes.size() - 1];
}

bool is_global(const Node& node, const Scope& scope) {
    if (node.kind != Kind::Subscript || node.items[0]->kind != Kind::Name) return false;
    const Variable* v = scope.find(node.items[0]->text);
    return v != nullptr &&
           (v->type.form == Form::Tensor || v->type.form == Form::Operand || v->type.form == Form::Work);
}

/// An operand of a GEMM: a shared cell, transposed or not, or fragments.
std::string factor(const Node& node, const Expressions& x) {
    if (node.kind == Kind::Attribute && node.text == "T") return "transposed(" + factor(*node.items[0], x) + ")";
    const Type t = x.type(node);
    if (t.form == Form::Fragments && node.kind == Kind::Name) return node.text;
    if (t.form != Form::Cells) fail("no_rule", "`" + syntax::print(node) + "` is no operand of a GEMM", node.span);
    return x.cell(node);
}

/// The register tile that a product writes.
const Node& tile(const Node& to, const Facts& f, const Expressions& x) {
    if (to.kind != Kind::Name || x.type(to).form != Form::Tile || !f.scope->find(to.text)->type.storage)
        fail("no_rule", "a GEMM writes register storage", to.span);
    return to;
}

/// out=x: x is not read. add=x: it is. out=x, add=c: if c holds.
std::string gemm_async(const Node& call, const Facts& f, const Expressions& x) {
    const Node *to = nullptr, *add = nullptr;
    for (const auto& k : call.keywords) {
        if (k.name == "out") to = k.value.get();
        if (k.name == "add") add = k.value.get();
    }
    if (call.items.size() != 3 || call.keywords.size() != (to != nullptr && add != nullptr ? 2u : 1u) ||
        (to == nullptr && add == nullptr) || !has_warpgroups(*f.kernel))
        fail("no_rule", "warpgroups: gemm_async(A, B, out=x), add=x or out=x, add=condition", call.span);
    std::string adds;
    if (add != nullptr) adds = to == nullptr ? ", true" : ", " + x.print(*add, Elem::Bool);
    return "gemm_async(" + tile(to != nullptr ? *to : *add, f, x).text + ", " + factor(*call.items[1], x) + ", " +
           factor(*call.items[2], x) + adds + ");";
}

std::string gemm(const Node& call, const Facts& f, const Expressions& x) {
    if (call.items.size() != 3 || call.keywords.size() != 1 ||
        (call.keywords[0].name != "out" && call.keywords[0].name != "add"))
        fail("no_rule", "gemm(A, B, out=x) or gemm(A, B, add=x)", call.span);
    const Node& to = tile(*call.keywords[0].value, f, x);
    return std::string(call.keywords[0].name == "add" ? "gemm_add(" : "gemm(") + to.text + ", " +
           factor(*call.items[1], x) + ", " + factor(*call.items[2], x) + ");";
}

/// One of an array of barriers, or the only one: how helpers get it.
std::string barrier(const Node& node, Form form, const Facts& f, const Expressions& x) {
    const bool indexed = node.kind == Kind::Subscript;
    const Node& name = indexed ? *node.items[0] : node;
    const Variable* v = name.kind == Kind::Name ? f.scope->find(name.text) : nullptr;
    if (v == nullptr || v->type.form != form || indexed == v->type.extents.empty())
        fail("no_rule", "`" + syntax::print(node) + "` is no barrier of this kind", node.span);
    return indexed ? x.cell(node) : node.text + "[0]";
}

std::string copy_async(const Node& call, const Facts& f, const Expressions& x) {
    if (call.items.size() == 3 && call.keywords.empty() && is_global(*call.items[2], *f.scope)) { // out of cells
        if (x.type(*call.items[1]).form != Form::Cells) fail("no_rule", "this is no cell", call.items[1]->span);
        return "copy_async(" + x.slice(*call.items[2], "rows") + ", " + rows_of(*call.items[2], *f.scope) + ", " +
               x.cell(*call.items[1]) + ");";
    }
    const bool signals = call.keywords.size() == 1 && call.keywords[0].name == "signal";
    if (call.items.size() != 3 || (!signals && !call.keywords.empty()) || !is_global(*call.items[1], *f.scope))
        fail("no_rule", "copy_async(slice of global memory, cell)", call.span);
    const std::string begin = signals ? "copy_async(" : "copy_async<" + f.derived + ">(";
    const std::string end = signals ? ", " + barrier(*call.keywords[0].value, Form::Phases, f, x) + ");" : ");";
    const Node* storage = call.items[2].get();
    while (storage->kind == Kind::Subscript) storage = storage->items[0].get();
    const Type to = x.type(*storage);
    const std::string cell = x.cell(*call.items[2]);
    const std::string from = x.slice(*call.items[1], to.form == Form::CellColumns ? "span" : "rows");
    if (to.form == Form::CellColumns && x.type(*call.items[1]->items[0]).form == Form::Operand &&
        x.type(*call.items[1]->items[0]).element == to.element)
        return begin + cell + ", " + from + end;
    if (to.form != Form::Cells) fail("no_rule", "this memory is not copied to that storage", call.span);
    return begin + cell + ", " + from + ", " + rows_of(*call.items[1], *f.scope) + end;
}

/// A wait for storage: of each queue that has something of it, all but what may stay in flight.
Region wait(const Node& call, const Facts& f) {
    Region out{"wait", {}, {}};
    const Pending& p = f.pending;
    if (p.copies >= 0) out.lines.push_back("wait_copies<" + std::to_string(p.copies) + ">();");
    if (p.stores >= 0) out.lines.push_back("wait_stores<" + std::to_string(p.stores) + ">();");
    if (p.products >= 0) {
        std::string registers;
        for (const auto& r : p.retired) registers += (registers.empty() ? "" : ", ") + r;
        out.lines.push_back("wait_gemm<" + std::to_string(p.products) + ">(" + registers + ");");
    }
    if (out.lines.empty()) fail("no_rule", "wait(storage) or wait(barrier, phase)", call.span);
    return out;
}

/// arrive(barrier), and sync and arrive of a named barrier, with the threads that it counts.
std::string at_barrier(const Node& call, const Facts& f, const Expressions& x) {
    const std::string name = callee(call);
    const Node& at = *call.items.at(1);
    const Form form = x.type(at).form;
    if (form == Form::Phases && name == "arrive") return "arrive(" + barrier(at, form, f, x) + ");";
    if (form != Form::Barrier)
        fail("no_rule", name + "() is for a " + (name == "sync" ? "named " : "") + "barrier", call.span);
    if (has_warpgroups(*f.kernel)) return name + "(" + barrier(at, form, f, x) + ", " + f.derived + ");";
    if (name != "sync" || at.kind != Kind::Name) fail("no_rule", "sync() is for a named barrier", call.span);
    return "bar_sync(" + at.text + ", " + f.derived + ");";
}

} // namespace

bool print_move(const Node& call, const Statement& s, const Analysis& analysis, Region& out) {
    const Facts& f = analysis.of(s);
    const Expressions x(*f.scope);
    const std::string name = callee(call);
    const auto arguments = call.items.size() - 1;
    if (name == "copy_async") {
        out = {"copy", {copy_async(call, f, x)}, {}};
    } else if (name == "wait" && arguments == 1) {
        out = wait(call, f);
    } else if (name == "wait" && arguments == 2) {
        out = {
            "wait",
            {"wait(" + barrier(*call.items[1], Form::Phases, f, x) + ", " + x.print(*call.items[2], Elem::Int) + ");"},
            {}};
    } else if ((name == "sync" || name == "arrive") && arguments == 1) {
        out = {name, {at_barrier(call, f, x)}, {}};
    } else if (name == "fence" && arguments == 1) {
        if (x.type(*call.items[1]).form != Form::Cells) fail("no_rule", "fence() is of cells", call.span);
        out = {"fence", {"fence_async();"}, {}};
    } else if (name == "publish" && arguments == 2) {
        const Type t = x.type(*call.items[1]);
        if (t.form != Form::Channel || call.items[2]->kind != Kind::Tuple)
            fail("no_rule", "publish(channel, (value, ...))", call.span);
        std::string values;
        for (const auto& v : call.items[2]->items) {
            const Type of = x.type(*v);
            const bool name_of = of.form == Form::Ranges && v->kind == Kind::Name;
            values += (values.empty() ? "" : ", ") + (name_of ? v->text : x.print(*v, of.elem));
        }
        out = {"channel", {call.items[1]->text + ".publish(" + values + ");"}, {}};
    } else if (name == "gemm_async") {
        out = {"gemm", {gemm_async(call, f, x)}, {}};
    } else if (name == "gemm") {
        out = {"gemm", {gemm(call, f, x)}, {}};
    } else if (name == "copy" && arguments == 2 && is_global(*call.items[2], *f.scope)) {
        out = {"copy",
               {"copy(" + x.slice(*call.items[2], "rows") + ", " + rows_of(*call.items[2], *f.scope) + ", " +
                x.cell(*call.items[1]) + ");"},
               {}};
    } else {
        return false;
    }
    return true;
}

Region print_store(const Node& target, const Node& value, const Facts& f) {
    Expressions x(*f.scope);
    if (target.kind != Kind::Subscript) fail("no_rule", "only names and storage are assigned", target.span);
    const Node& object = *target.items[0];
    const auto at = parts(target.items[1]);
    const bool whole =
        at.size() == 1 && at[0]->kind == Kind::Slice && !at[0]->items[0] && !at[0]->items[1] && !at[0]->items[2];
    if (is_global(target, *f.scope)) {
        const Type& t = f.scope->find(object.text)->type;
        if (at.back()->kind == Kind::Slice) {
            if (value.kind != Kind::Name || t.form == Form::Operand)
                fail("no_rule", "a row or a tile is stored from a name", target.span);
            const Type v = x.type(value);
            const std::string element = t.element == "f32" ? "float" : t.element;
            const std::string rest =
                x.slice(target, "rows") + ", " + rows_of(target, *f.scope) + ", " + value.text + ");";
            if (v.form == Form::Row) return {"store", {"store_rows<" + element + ", R>(" + rest}, {}};
            if (v.form != Form::Tile) fail("no_rule", "a row or a tile is stored", value.span);
            return {"store", {"store_tile<" + element + ", R, " + v.columns + ">(" + rest}, {}};
        }
        if (t.form == Form::Operand) fail("no_rule", "an operand is never written", target.span);
        x.type(target);
        const std::string place = x.element(target), number = x.print(value, t.elem);
        if (t.form == Form::Tensor) return {"store", {"narrow(" + place + ", " + number + ");"}, {}};
        if (t.element == "f32" || t.element == "i32") return {"store", {place + " = " + number + ";"}, {}};
        return {"store", {"narrow(&" + place + ", " + number + ");"}, {}};
    }
    if (!whole) fail("no_rule", "storage is written as a whole: x[:] = ...", target.span);
    const Type t = x.type(object);
    Region out;
    if (t.form == Form::Cells) {
        if (value.kind != Kind::Name || x.type(value).form != Form::Tile)
            fail("no_rule", "a cell is written from a tile that has a name", value.span);
        return {"store", {"store(" + x.cell(object) + ", " + value.text + ");"}, {}};
    }
    if (!t.storage || object.kind != Kind::Name) fail("no_rule", "this is no storage", object.span);
    if (t.form == Form::Fragments) {
        const Type v = x.type(value);
        if (v.form == Form::Cells) return {"load", {"load(" + object.text + ", " + x.cell(value) + ");"}, {}};
        if (v.form != Form::Tile || v.columns != t.columns)
            fail("no_rule", "fragments are packed from a tile", value.span);
        if (value.kind == Kind::Name && v.elem == Elem::Real)
            return {"pack", {"pack(" + object.text + ", " + value.text + ");"}, {}};
        auto taken = names_in(value);
        taken.push_back(object.text);
        Binding tile{fresh("whole", taken), v, true, false};
        tile.type.elem = Elem::Real;
        Lines inner;
        print_value(inner, x, tile, value);
        out = {"pack", {"{"}, {}};
        for (const auto& l : inner) out.lines.push_back("    " + l);
        out.lines.push_back("    pack(" + object.text + ", " + tile.name + ");");
        out.lines.push_back("}");
        return out;
    }
    out.rule = "elementwise";
    print_value(out.lines, x, {object.text, t, false, false}, value);
    return out;
}

} // namespace cubridge::ir::lower
