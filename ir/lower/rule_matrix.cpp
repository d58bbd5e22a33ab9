// Tiles that read matrices: operands whose last axis is the columns'. Elements of a thread lie in few rows, at constant
// distances from the first of each. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/rules.h"
#include "ir/syntax/printer.h"
#include <algorithm>

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;

namespace {

/// A matrix, and what its region calls its rows, the first column, the last that it has, and the stride of columns.
struct Matrix {
    std::vector<const Node*> reads; ///< alike
    std::vector<NodePtr> axes;
    std::string operand, columns, at, first, last, step;
};

/// Nothing: its last index is no column number plus what all have in common, or another one hangs on columns.
std::optional<Matrix> matrix(const Node& read, const Expressions& x) {
    Matrix m;
    m.reads = {&read};
    m.axes = parts(read.items[1]);
    const auto by = slopes(*m.axes.back(), x);
    if (!by || by->columns != 1 || by->rows != 0) return std::nullopt;
    for (std::size_t k = 0; k + 1 < m.axes.size(); ++k)
        if (const Form f = x.type(*m.axes[k]).form; f != Form::Scalar && f != Form::Row && f != Form::Rows)
            return std::nullopt;
    m.operand = read.items[0]->text;
    m.columns = by->name;
    return m;
}

std::vector<Matrix> matrices(const Node& value, const Expressions& x) {
    std::vector<const Node*> reads;
    tile_reads(value, Form::Operand, x, reads);
    std::vector<Matrix> out;
    for (const Node* read : reads) {
        const auto same = std::find_if(out.begin(), out.end(), [&](const Matrix& m) {
            return syntax::print(*m.reads[0]) == syntax::print(*read);
        });
        if (same != out.end())
            same->reads.push_back(read);
        else if (auto m = matrix(*read, x))
            out.push_back(std::move(*m));
    }
    return out;
}

} // namespace

bool print_by_rows(Lines& out, Expressions& x, const Type& type, const std::string& name, const Node& value,
                   const std::string& indent) {
    if (type.form != Form::Tile) return false;
    auto all = matrices(value, x);
    if (all.empty()) return false;
    auto taken = names_in(value);
    taken.push_back(name);
    const auto own = [&](const std::string& stem) {
        taken.push_back(fresh(stem, taken));
        return taken.back();
    };
    const std::string e = own("e"), r = own("r"), plain = own("plain"), part = own("part"), end = own("end");
    const std::string tile = "TILE(" + type.columns + ")";
    const auto put = [&](const std::string& line) { out.push_back(indent + line); };
    put("{");
    std::string is_plain;
    Expressions near = x, far = x; // what stands for a read means nothing elsewhere
    for (auto& m : all) {
        m.at = own(m.operand + "_at");
        m.first = own(m.operand + "_first");
        m.last = own(m.operand + "_last");
        m.step = own(m.operand + "_step");
        const Type read = x.type(*m.reads[0]->items[0]);
        const std::string axis = "[" + std::to_string(m.axes.size() - 1) + "]", size = m.operand + ".o.size" + axis,
                          pointer = "const " + c_element(read.element) + "*";
        std::string row = m.operand + ".begin()";
        for (std::size_t k = 0; k + 1 < m.axes.size(); ++k)
            row += " + " + m.operand + ".axis(" + std::to_string(k) + ", " +
                   x.print(*m.axes[k], Elem::Int, {Form::Row, r}) + ")";
        put("    " + pointer + " " + m.at + "[ROWS];");
        // without columns it may lie nowhere: what is read then, for no key, is anything that can be
        put("    EACH_ROW(" + r + ") " + m.at + "[" + r + "] = " + size + " > 0 ? (" + pointer + ")" + m.operand +
            ".o.data + (" + row + ") : (" + pointer + ")args.q.data;");
        put("    const int " + m.first + " = " + x.print(*m.axes.back(), Elem::Int, {Form::Tile, "0"}) + ", " + m.last +
            " = (int)(max((i64)1, min(" + size + ", (i64)1 << 31)) - 1);");
        put("    const i64 " + m.step + " = " + m.operand + ".o.stride" + axis + ";");
        const std::string column = m.first + " + " + m.columns + ".offset(CID(" + e + "))";
        is_plain +=
            (is_plain.empty() ? "" : " && ") + m.step + " == 1 && " + m.first + " >= 0 && " + column + " <= " + m.last;
        for (const Node* one : m.reads) {
            const std::string here = "widen(" + m.at + "[ROW(" + e + ")][";
            near.stand(one, here + column + "])", true);
            far.stand(one, here + "clamp(" + column + ", 0, " + m.last + ") * " + m.step + "])", true);
        }
    }
    put("    const auto " + plain + " = [&](int " + e + ") { return " + is_plain +
        "; }; // columns up to that element's");
    const auto few = [&](const Expressions& by) {
        put("            UNROLL for (int " + e + " = " + part + "; " + e + " < " + end + "; ++" + e + ") " + name +
            "[" + e + "] = " + by.print(value, type.elem, {Form::Tile, e}) + ";");
    };
    put("    if (" + plain + "(" + tile + " - 1)) { // side by side, and none is clamped");
    Expressions whole = near;
    print_elements(out, whole, type, name, value, indent + "        ");
    put("    } else UNROLL for (int " + part + " = 0; " + part + " < " + tile + "; " + part +
        " += 16) { // few at a time: their addresses take registers");
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
