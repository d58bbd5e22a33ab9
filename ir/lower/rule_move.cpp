// Statements that move data or synchronise, from their operands. SPDX-License-Identifier: Apache-2.0
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

std::string gemm(const Node& call, const Facts& f, const Expressions& x) {
    if (call.items.size() != 3 || call.keywords.size() != 1 ||
        (call.keywords[0].name != "out" && call.keywords[0].name != "add"))
        fail("no_rule", "gemm(A, B, out=x) or gemm(A, B, add=x)", call.span);
    const Node& to = *call.keywords[0].value;
    if (to.kind != Kind::Name || x.type(to).form != Form::Tile || !f.scope->find(to.text)->type.storage)
        fail("no_rule", "a GEMM writes register storage", to.span);
    return std::string(call.keywords[0].name == "add" ? "gemm_add(" : "gemm(") + to.text + ", " +
           factor(*call.items[1], x) + ", " + factor(*call.items[2], x) + ");";
}

std::string copy_async(const Node& call, const Facts& f, const Expressions& x) {
    if (call.items.size() != 3 || !call.keywords.empty() || !is_global(*call.items[1], *f.scope))
        fail("no_rule", "copy_async(slice of global memory, cell)", call.span);
    const Type to = x.type(call.items[2]->kind == Kind::Subscript ? *call.items[2]->items[0] : *call.items[2]);
    const std::string cell = x.cell(*call.items[2]);
    const std::string from = x.slice(*call.items[1], to.form == Form::CellColumns ? "span" : "rows");
    if (to.form == Form::CellColumns && x.type(*call.items[1]->items[0]).form == Form::Operand &&
        x.type(*call.items[1]->items[0]).element == to.element)
        return "copy_async<" + f.derived + ">(" + cell + ", " + from + ");";
    if (to.form != Form::Cells) fail("no_rule", "this memory is not copied to that storage", call.span);
    return "copy_async<" + f.derived + ">(" + cell + ", " + from + ", " + rows_of(*call.items[1], *f.scope) + ");";
}

} // namespace

bool print_move(const Node& call, const Statement& s, const Analysis& analysis, Region& out) {
    const Facts& f = analysis.of(s);
    const Expressions x(*f.scope);
    const std::string name = callee(call);
    const auto arguments = call.items.size() - 1;
    if (name == "copy_async") {
        out = {"copy", {copy_async(call, f, x)}, {}};
    } else if (name == "wait" && arguments == 1 && f.pending >= 0) {
        out = {"wait", {"wait_copies<" + std::to_string(f.pending) + ">();"}, {}};
    } else if (name == "sync" && arguments == 1) {
        const Type t = x.type(*call.items[1]);
        if (t.form != Form::Barrier || call.items[1]->kind != Kind::Name)
            fail("no_rule", "sync() is for a named barrier", call.span);
        out = {"sync", {"bar_sync(" + call.items[1]->text + ", " + f.derived + ");"}, {}};
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
    const bool whole = at.size() == 1 && at[0]->kind == Kind::Slice && !at[0]->items[0] && !at[0]->items[1] && !at[0]->items[2];
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
