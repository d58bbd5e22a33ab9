// Types of names on the CUDA side. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/type.h"
#include "cubridge/ir/dtype.h"
#include <algorithm>

namespace cubridge::ir::lower {
namespace {

/// Row numbers are a row of integers to everything but an index.
Form plain(Form f) {
    return f == Form::Rows ? Form::Row : f == Form::Cols ? Form::Column : f;
}

} // namespace

Type scalar(Elem elem, bool natural) {
    Type t;
    t.form = Form::Scalar;
    t.elem = elem;
    t.natural = natural;
    return t;
}

std::string Type::text() const {
    std::string out = std::to_string(static_cast<int>(form)) + "." + std::to_string(static_cast<int>(elem));
    if (natural) out += "+";
    if (storage) out += "!";
    out += ":" + columns + ":" + element;
    for (const auto& e : extents) out += "," + e;
    return out;
}

Type meet(const Type& a, const Type& b, Span span) {
    if (!a.known() || !b.known()) return {};
    if (!a.elementwise() || !b.elementwise())
        fail("no_rule", "an elementwise operation on something that is no scalar, row, column or tile", span);
    if (!a.columns.empty() && !b.columns.empty() && a.columns != b.columns)
        fail("no_rule", "columns of " + a.columns + " meet columns of " + b.columns, span);
    const Form x = plain(a.form), y = plain(b.form);
    Type out;
    if (x == y)
        out.form = x;
    else if (x == Form::Scalar || y == Form::Scalar)
        out.form = std::max(x, y);
    else
        out.form = Form::Tile;
    out.elem = std::max(a.elem, b.elem);
    out.natural = a.natural && b.natural;
    out.columns = a.columns.empty() ? b.columns : a.columns;
    return out;
}

Type merge(const Type& a, const Type& b, std::string_view name, Span span) {
    if (!a.known()) return b;
    if (!b.known() || a == b) return a;
    if (!a.elementwise() || !b.elementwise())
        fail("no_rule", "`" + std::string(name) + "` is assigned two things that have no common type", span);
    if (a.storage || b.storage)
        fail("no_rule", "`" + std::string(name) + "` is storage; write `" + std::string(name) + "[:] = ...`", span);
    Type out = meet(a, b, span);
    if (a.form == b.form && a.columns == b.columns) out.form = a.form;
    return out;
}

const char* c_name(Elem elem) {
    return elem == Elem::Real ? "float" : elem == Elem::Int ? "int" : "bool";
}

std::string c_element(const std::string& dtype) {
    static constexpr std::pair<const char*, const char*> kNames[] = {{"f32", "float"},      {"f64", "double"},
                                                                     {"i32", "int"},        {"i16", "short"},
                                                                     {"i8", "signed char"}, {"u8", "unsigned char"}};
    for (const auto& [from, to] : kNames)
        if (dtype == from) return to;
    return dtype;
}

Elem elem_of(std::string_view dtype, Span span) {
    if (dtype == "elem") return Elem::Real;
    const auto t = dtype_from_short(dtype);
    if (!t) fail("no_rule", "`" + std::string(dtype) + "` is no element type", span);
    return is_float(*t) ? Elem::Real : *t == DType::Bool ? Elem::Bool : Elem::Int;
}

std::string declaration(const Type& t, const std::string& name, bool reference) {
    const std::string base = c_name(t.elem), array = reference ? "(&" + name + ")" : name;
    switch (t.form) {
    case Form::Row: return base + " " + array + "[ROWS]";
    case Form::Column: return base + " " + array + "[COLS(" + t.columns + ")]";
    case Form::Tile: return base + " " + array + "[TILE(" + t.columns + ")]";
    case Form::Fragments: return "Fragment<elem> " + array + "[FRAGMENTS(" + t.columns + ")]";
    case Form::Rows: return std::string("const Rows") + (reference ? "& " : " ") + name;
    case Form::Cols: return std::string("const Cols") + (reference ? "& " : " ") + name;
    case Form::Ranges: return reference ? "auto& " + name : t.columns + " " + name;
    default: return base + (reference ? "& " : " ") + name;
    }
}

} // namespace cubridge::ir::lower
