// Tiles that read matrices: operands whose last axis is the columns'. Elements of a thread lie in few rows, at constant
// distances from the first of each. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/rules.h"

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;

namespace {

/// A read, and the names that it has in the region.
struct Matrix {
    const Node* read;
    std::string operand, element, at, first, last, step, columns;
};

/// Nothing: the last index is no column number plus what all have in common, or another one hangs on columns.
std::optional<Matrix> matrix(const Node& read, const Expressions& x) {
    const auto axes = parts(read.items[1]);
    const auto by = slopes(*axes.back(), x);
    if (!by || by->columns != 1 || by->rows != 0) return std::nullopt;
    for (std::size_t k = 0; k + 1 < axes.size(); ++k)
        if (const Form f = x.type(*axes[k]).form; f != Form::Scalar && f != Form::Row && f != Form::Rows)
            return std::nullopt;
    Matrix m;
    m.read = &read;
    m.operand = read.items[0]->text;
    m.element = c_element(x.type(*read.items[0]).element);
    m.columns = by->name;
    return m;
}

} // namespace

bool print_by_rows(Lines& out, Expressions& x, const Type& type, const std::string& name, const Node& value,
                   const std::string& indent) {
    if (type.form != Form::Tile) return false;
    auto taken = names_in(value);
    taken.push_back(name);
    const std::string e = fresh("e", taken), r = fresh("r", taken); // as print_elements has it
    taken.insert(taken.end(), {e, r});
    const auto own = [&](const std::string& stem) {
        taken.push_back(fresh(stem, taken));
        return taken.back();
    };
    std::vector<const Node*> reads;
    tile_reads(value, Form::Operand, x, reads);
    std::vector<Matrix> all;
    for (const Node* read : reads)
        if (auto m = matrix(*read, x)) all.push_back(std::move(*m));
    if (all.empty()) return false;

    const std::string plain = own("plain"), part = own("part"), end = own("end");
    const auto put = [&](const std::string& line) { out.push_back(indent + line); };
    put("{");
    std::string is_plain;
    for (auto& m : all) {
        m.at = own(m.operand + "_at");
        m.first = own(m.operand + "_first");
        m.last = own(m.operand + "_last");
        m.step = own(m.operand + "_step");
        const auto axes = parts(m.read->items[1]);
        const std::string axis = std::to_string(axes.size() - 1), pointer = "const " + m.element + "*";
        std::string row = m.operand + ".begin()";
        for (std::size_t k = 0; k + 1 < axes.size(); ++k)
            row += " + " + m.operand + ".axis(" + std::to_string(k) + ", " +
                   x.print(*axes[k], Elem::Int, {Form::Row, r}) + ")";
        put("    " + pointer + " " + m.at + "[ROWS];");
        put("    EACH_ROW(" + r + ") " + m.at + "[" + r + "] = (" + pointer + ")" + m.operand + ".o.data + (" + row +
            ");");
        put("    const int " + m.first + " = " + x.print(*axes.back(), Elem::Int, {Form::Tile, "0"}) + ", " + m.last +
            " = (int)(max((i64)1, min(" + m.operand + ".o.size[" + axis + "], (i64)1 << 31)) - 1);");
        put("    const i64 " + m.step + " = " + m.operand + ".o.stride[" + axis + "];");
        is_plain += (is_plain.empty() ? "" : " && ") + m.step + " == 1 && " + m.first + " >= 0 && " + m.first + " + " +
                    m.columns + ".offset(CID(" + e + ")) <= " + m.last;
    }
    // side by side, and none clamped, up to that element's column
    put("    const auto " + plain + " = [&](int " + e + ") { return " + is_plain + "; };");
    Expressions near = x, far = x; // what stands for a read here means nothing elsewhere
    for (const auto& m : all) {
        const std::string row = "widen(" + m.at + "[ROW(" + e + ")][",
                          column = m.first + " + " + m.columns + ".offset(CID(" + e + "))";
        near.stand(m.read, row + column + "])", true);
        far.stand(m.read, row + "clamp(" + column + ", 0, " + m.last + ") * " + m.step + "])");
    }
    const auto few = [&](const Expressions& by) {
        put("            UNROLL for (int " + e + " = " + part + "; " + e + " < " + end + "; ++" + e + ") " + name +
            "[" + e + "] = " + by.print(value, type.elem, {Form::Tile, e}) + ";");
    };
    const std::string tile = "TILE(" + type.columns + ")";
    put("    if (" + plain + "(" + tile + " - 1)) {");
    print_elements(out, near, type, name, value, indent + "        ");
    put("    } else UNROLL for (int " + part + " = 0; " + part + " < " + tile + "; " + part +
        " += 16) { // few addresses at a time: they take registers");
    put("        const int " + end + " = min(" + part + " + 16, " + tile + ");");
    put("        if (" + plain + "(" + end + " - 1)) {");
    few(near);
    put("        } else {");
    few(far);
    put("        }");
    put("    }");
    put("}");
    return true;
}

} // namespace cubridge::ir::lower
