// Elementwise statements: a value for every element of a scalar, row, column or tile.
// SPDX-License-Identifier: Apache-2.0
#include "ir/lower/rules.h"
#include <algorithm>

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;

std::string fresh(std::string name, const std::vector<std::string>& taken) {
    while (std::find(taken.begin(), taken.end(), name) != taken.end()) name += "_";
    return name;
}

namespace {

/// The type of row or column numbers that a role assigns more than once. Empty: another form.
std::string positions_of(Form form) {
    return form == Form::Rows ? "Rows" : form == Form::Cols ? "Cols" : "";
}

Type type_of(const std::string& name, const Expressions& x) {
    Node n;
    n.kind = Kind::Name;
    n.text = name;
    return x.type(n);
}

} // namespace

void print_declarations(Lines& out, const std::vector<Binding>& bindings) {
    std::string line;
    for (const auto& b : bindings) {
        if (!b.declares) continue;
        std::string text = declaration(b.type, b.name);
        if (const std::string positions = positions_of(b.type.form); !positions.empty()) // of no item so far
            text = positions + " " + b.name + "(0)";
        line += (line.empty() ? "" : " ") + text + ";";
    }
    if (!line.empty()) out.push_back(line);
}

namespace {

/// `EACH(e, x) `: the loop over the elements of a name.
std::string loop_of(const Type& t, const std::string& name, const std::string& variable) {
    switch (t.form) {
    case Form::Row: return "EACH_ROW(" + variable + ") ";
    case Form::Column: return "EACH_COL(" + variable + ", " + t.columns + ") ";
    default: return "EACH(" + variable + ", " + name + ") ";
    }
}

std::string variable_of(Form form) {
    return form == Form::Row ? "r" : form == Form::Column ? "c" : "e";
}

} // namespace

void print_elements(Lines& out, Expressions& x, const Type& type, const std::string& name, const Node& value,
                    const std::string& indent) {
    if (print_by_distance(out, x, type, name, value, indent)) return;
    auto taken = names_in(value);
    taken.push_back(name);
    const std::string v = fresh(variable_of(type.form), taken);
    out.push_back(indent + loop_of(type, name, v) + name + "[" + v +
                  "] = " + x.print(value, type.elem, {type.form, v}) + ";");
}

namespace {

/// The column numbers of a value of columns that reads memory by them and needs nothing else of columns or rows: each
/// is read by one lane then, not by all that share it. Empty: not such a value.
std::string read_columns(const Node& value, const Expressions& x) {
    std::string columns;
    bool reads = false;
    for (const auto& name : names_in(value)) {
        const Form form = type_of(name, x).form;
        if (form == Form::Cols && !columns.empty()) return "";
        if (form == Form::Cols) columns = name;
        if (form == Form::Operand || form == Form::Work) reads = true;
        if (form == Form::Row || form == Form::Column || form == Form::Tile || form == Form::Rows) return "";
    }
    return reads ? columns : "";
}

void each(Lines& out, Expressions& x, const Type& type, const std::string& name, const Node& value,
          const std::string& indent) {
    if (type.form == Form::Column)
        if (const std::string columns = read_columns(value, x); !columns.empty()) {
            const std::string v = fresh(variable_of(type.form), names_in(value));
            out.push_back(indent + "columns_of<" + type.columns + ">(" + name + ", " + columns + ", [&](const auto& " +
                          columns + ", int " + v + ") { return " + x.print(value, type.elem, {type.form, v}) + "; });");
            return;
        }
    if (!print_by_rows(out, x, type, name, value, indent)) print_elements(out, x, type, name, value, indent);
}

std::string reduction(const Node& call) {
    return call.items[0]->text == "amax" ? "row_max_of(" : "row_sum_of(";
}

/// Rows that hold what the reductions in a value give; their names.
void reduce(Lines& out, Expressions& x, const std::vector<const Node*>& all, std::vector<std::string> taken) {
    for (const Node* r : all) {
        const bool complete = callee(*r) == "complete";
        const Node& of = complete ? *r->items[1] : *r->items[0]->items[0];
        const std::string part = fresh("part", taken);
        taken.push_back(part);
        Type row = x.type(*r);
        out.push_back("    " + declaration(row, part) + ";");
        if (complete) {
            each(out, x, row, part, *r, "    ");
        } else {
            std::string whole = of.text;
            Type t = x.type(of);
            if (of.kind != Kind::Name || t.elem != Elem::Real) {
                whole = fresh("whole", taken);
                taken.push_back(whole);
                t.elem = Elem::Real;
                out.push_back("    " + declaration(t, whole) + ";");
                each(out, x, t, whole, of, "    ");
            }
            out.push_back("    " + reduction(*r) + part + ", " + whole + ");");
        }
        x.hold(r, part);
    }
}

/// `1.0 / (exp2(y) + 1.0)` in an expression: y, and the whole.
std::pair<const Node*, const Node*> logistic_in(const Node& node) {
    const auto is_one = [](const Node& n) { return n.kind == Kind::Float && n.real == 1.0; };
    if (node.kind == Kind::Binary && node.text == "/" && is_one(*node.items[0])) {
        const Node& sum = *node.items[1];
        if (sum.kind == Kind::Binary && sum.text == "+")
            for (const std::size_t k : {std::size_t{0}, std::size_t{1}})
                if (is_one(*sum.items[1 - k]) && callee(*sum.items[k]) == "exp2")
                    return {sum.items[k]->items[1].get(), &node};
    }
    for (const auto& i : node.items)
        if (i)
            if (const auto found = logistic_in(*i); found.first != nullptr) return found;
    return {nullptr, nullptr};
}

/// A tile's name in an expression: its elements are what a loop counts.
std::string tile_in(const Node& node, const Expressions& x) {
    for (const auto& name : names_in(node))
        if (type_of(name, x).form == Form::Tile) return name;
    return "";
}

} // namespace

void print_vote(Lines& out, Expressions& x, const std::string& name, const Node& vote) {
    const Node& of = *vote.items.at(1);
    Type t = x.type(of);
    auto taken = names_in(of);
    taken.push_back(name);
    const std::string some = fresh("some", taken);
    taken.push_back(some);
    out.push_back("{");
    reduce(out, x, x.reductions(of), taken);
    t.form = t.form == Form::Rows ? Form::Row : t.form == Form::Cols ? Form::Column : t.form;
    const std::string tile = t.form == Form::Tile ? tile_in(of, x) : "", v = fresh(variable_of(t.form), taken);
    if (t.form == Form::Tile && tile.empty()) fail("no_rule", "any() of a tile that has no name", of.span);
    // of a tile four: each element would wait for the predicate of the one before
    const bool four = t.form == Form::Tile;
    taken.push_back(v);
    const std::string own = four ? fresh("four", taken) : some, one = four ? own + "[" + v + " & 3]" : some;
    out.push_back("    bool " + own + (four ? "[4] = {false, false, false, false};" : " = false;"));
    out.push_back("    " + loop_of(t, tile, v) + one + " = " + one + " | (" + x.print(of, Elem::Bool, {t.form, v}) +
                  ");");
    if (four) {
        out.push_back("    const bool " + some + " = " + own + "[0] | " + own + "[1] | " + own + "[2] | " + own +
                      "[3];");
    }
    out.push_back("    " + name + " = __any_sync(~0u, " + some + ");");
    out.push_back("}");
}

void print_votes(Lines& out, Expressions& x, const Node& value, const Facts& facts) {
    int number = facts.vote;
    for (const Node* v : Expressions::votes(value)) {
        const std::string name = "vote" + std::to_string(number++);
        out.push_back("bool " + name + ";");
        print_vote(out, x, name, *v);
        x.hold(v, name);
    }
}

void print_value(Lines& out, Expressions& x, const Binding& target, const Node& value) {
    const Type& t = target.type;
    if (t.form == Form::Scalar) {
        const std::string left = !target.declares ? target.name : declaration(t, target.name);
        out.push_back((target.constant ? "const " : "") + left + " = " + x.print(value, t.elem) + ";");
        return;
    }
    if (const std::string kind = positions_of(t.form); !kind.empty()) {
        const std::string from = x.print(*value.items[1], Elem::Int);
        if (target.constant)
            out.push_back(declaration(t, target.name) + "(" + from + ");");
        else // of one item after another: declared in front
            out.push_back((target.declares ? kind + " " + target.name : target.name + " = " + kind) + "(" + from +
                          ");");
        return;
    }
    if (!t.array()) fail("no_rule", "no rule prints a value of this kind", value.span);
    if (target.declares) out.push_back(declaration(t, target.name) + ";");
    auto parts = x.reductions(value);
    if (t.form == Form::Row) // one shuffle a row is what the row's own loop does
        parts.erase(std::remove_if(parts.begin(), parts.end(), [](const Node* r) { return callee(*r) == "complete"; }),
                    parts.end());
    const auto named = names_in(value);
    const bool apart = std::find(named.begin(), named.end(), target.name) == named.end();
    if (parts.empty() && t.form == Form::Tile && callee(value) == "logistic_small" && apart) {
        each(out, x, t, target.name, *value.items.at(1), "");
        return out.push_back("logistic_small(" + target.name + ");");
    }
    if (parts.empty() && t.form == Form::Tile && t.elem == Elem::Real && apart)
        if (const auto [power, whole] = logistic_in(value); power != nullptr) {
            each(out, x, t, target.name, *power, "");
            out.push_back("logistic_of(" + target.name + ");");
            if (whole == &value) return;
            x.hold(whole, target.name);
        }
    if (parts.empty()) return each(out, x, t, target.name, value, "");
    if (parts[0] == &value && t.elem == Elem::Real) { // the row itself, of a tile that has a name
        const Node& of = *value.items[0]->items[0];
        if (of.kind == Kind::Name && x.type(of).elem == Elem::Real)
            return out.push_back(reduction(value) + target.name + ", " + of.text + ");");
    }
    auto taken = names_in(value);
    taken.push_back(target.name);
    out.push_back("{");
    reduce(out, x, parts, taken);
    each(out, x, t, target.name, value, "    ");
    out.push_back("}");
}

} // namespace cubridge::ir::lower
