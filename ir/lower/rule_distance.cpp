// Tiles that read a table by the distance of their columns and rows: elements of a thread lie at constant distances
// from its first, so that one address serves all of them. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/rules.h"

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;

void tile_reads(const Node& node, Form form, const Expressions& x, std::vector<const Node*>& out) {
    if (x.held(node)) return;
    if (node.kind == Kind::Subscript && node.items[0]->kind == Kind::Name && x.type(*node.items[0]).form == form &&
        x.type(node).form == Form::Tile)
        out.push_back(&node);
    for (const auto& i : node.items)
        if (i) tile_reads(*i, form, x, out);
}

std::optional<Slopes> slopes(const Node& node, const Expressions& x) {
    const Form form = x.type(node).form;
    if (form == Form::Scalar) return Slopes{};
    if (node.kind == Kind::Name && form == Form::Cols) return Slopes{1, 0, node.text};
    if (node.kind == Kind::Name && form == Form::Rows) return Slopes{0, 1, ""};
    if (node.kind != Kind::Binary || (node.text != "+" && node.text != "-")) return std::nullopt;
    const auto a = slopes(*node.items[0], x), b = slopes(*node.items[1], x);
    if (!a || !b) return std::nullopt;
    const int sign = node.text == "+" ? 1 : -1;
    return Slopes{a->columns + sign * b->columns, a->rows + sign * b->rows, b->name.empty() ? a->name : b->name};
}

bool print_by_distance(Lines& out, Expressions& x, const Type& type, const std::string& name, const Node& value,
                       const std::string& indent) {
    if (type.form != Form::Tile) return false;
    std::vector<const Node*> reads;
    tile_reads(value, Form::Work, x, reads);
    if (reads.size() != 1) return false;
    const Node& read = *reads[0];
    const std::string& table = read.items[0]->text;
    const std::string& element = x.type(*read.items[0]).element;
    const auto at = parts(read.items[1]);
    const Node& index = *at.back();
    const auto by = slopes(index, x);
    if (!by || by->columns != 1 || by->rows != -1 || (element != "f32" && element != "i32")) return false;
    std::string row = table + "(";
    for (std::size_t k = 0; k + 1 < at.size(); ++k) {
        if (x.type(*at[k]).form != Form::Scalar) return false;
        row += x.print(*at[k], Elem::Int) + ", ";
    }
    auto taken = names_in(value);
    taken.push_back(name);
    const auto own = [&](const char* stem) {
        taken.push_back(fresh(stem, taken));
        return taken.back();
    };
    const std::string e = own("e"), line = own("line"), first = own("first"), last = own("last"), here = own("here");
    const std::string pointer = std::string("const ") + c_name(elem_of(element, read.span)) + "* const ";
    const auto each = [&](const std::string& text) {
        x.stand(&read, text);
        out.push_back(indent + "        EACH(" + e + ", " + name + ") " + name + "[" + e +
                      "] = " + x.print(value, type.elem, {Form::Tile, e}) + ";");
    };
    out.push_back(indent + "{");
    out.push_back(indent + "    " + pointer + line + " = &" + row + "0);");
    out.push_back(indent + "    const int " + first + " = " + x.print(index, Elem::Int, {Form::Tile, "0"}) + ", " +
                  last + " = max((int)" + table + ".size[" + std::to_string(at.size() - 1) + "], 1) - 1;");
    out.push_back(indent + "    if (" + first + " >= 8 * (ROWS - 1) && " + first + " + " + by->name + ".offset(COLS(" +
                  type.columns + ") - 1) <= " + last + ") { // none is clamped");
    out.push_back(indent + "        " + pointer + here + " = " + line + " + " + first + ";");
    const std::string beyond = by->name + ".offset(CID(" + e + ")) - 8 * ROW(" + e + ")";
    each(here + "[" + beyond + "]");
    out.push_back(indent + "    } else {");
    each(line + "[clamp(" + first + " + (" + beyond + "), 0, " + last + ")]");
    out.push_back(indent + "    }");
    out.push_back(indent + "}");
    return true;
}

} // namespace cubridge::ir::lower
