// Expressions as CUDA text, element by element. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/expression.h"
#include "ir/expr/ops.h"
#include <algorithm>
#include <array>

namespace cubridge::ir::lower {

using syntax::Kind;
using syntax::Node;

namespace {

// C++ precedence; larger binds tighter.
enum : int {
    kAny = 0,
    kConditional = 2,
    kOr,
    kAnd,
    kBitOr,
    kXor,
    kBitAnd,
    kEqual,
    kLess,
    kSum = 11,
    kProduct,
    kUnary = 14,
    kAtom = 16
};

int level_of(const std::string& op) {
    if (op == "*" || op == "/" || op == "%") return kProduct;
    if (op == "+" || op == "-") return kSum;
    if (op == "==" || op == "!=") return kEqual;
    if (op == "&") return kBitAnd;
    if (op == "^") return kXor;
    if (op == "|") return kBitOr;
    if (op == "&&") return kAnd;
    if (op == "||") return kOr;
    return kLess;
}

const OpInfo& operator_named(const std::string& name) {
    for (const auto& op : all_ops())
        if (name == op.name && *op.torch != 0) return op;
    fail("no_rule", "`" + name + "` is no operator");
}

/// The table's text with operands, each an atom, in their places.
std::string fill(std::string text, const std::vector<std::string>& x) {
    for (std::size_t k = 0; k < x.size(); ++k) {
        const std::string mark = "{" + std::to_string(k) + "}";
        for (auto at = text.find(mark); at != std::string::npos; at = text.find(mark, at + x[k].size()))
            text.replace(at, mark.size(), x[k]);
    }
    return text;
}

/// Functions with a text of their own beside the table's: faster where a tile or a row is computed, or from the
/// preamble. Each is within 2 ulp of the operator (docs/lowering.md).
const char* own_text(const std::string& name, bool scalar) {
    if (name == "sigmoid") return "sigmoid";
    if (name == "exp2" && !scalar) return "exp2_fast";
    if (name == "tanh_approx") return "tanh_fast";
    if (name == "tanh_small") return "tanh_small";
    if (name == "logistic_small") return "logistic_small";
    return nullptr;
}

std::string index_text(const Type& t, const Where& w) {
    switch (t.form) {
    case Form::Row:
    case Form::Rows: return w.form == Form::Tile ? "[ROW(" + w.loop + ")]" : "[" + w.loop + "]";
    case Form::Column:
    case Form::Cols: return w.form == Form::Tile ? "[CID(" + w.loop + ")]" : "[" + w.loop + "]";
    case Form::Tile: return "[" + w.loop + "]";
    default: return "";
    }
}

} // namespace

std::string Expressions::print(const Node& node, Elem as, const Where& where) const {
    return tight(node, as, where, kAny);
}

std::string Expressions::print(const Node& node, const Where& where) const {
    return text(node, where).text;
}

/// Column numbers, in a place that has each of them.
const Variable* Expressions::columns(const Node& node, const Where& where) const {
    if (where.form != Form::Tile && where.form != Form::Column) return nullptr;
    const Variable* v = node.kind == Kind::Name ? scope_.find(node.text) : nullptr;
    return v != nullptr && v->type.form == Form::Cols ? v : nullptr;
}

std::string Expressions::column_of(const Variable& columns, const Where& where) {
    const std::string at = index_text(columns.type, where);
    return at.substr(1, at.size() - 2);
}

/// What is the same in all columns: an integer of a row or of all.
bool Expressions::beside_columns(const Node& node) const {
    const Type t = type(node);
    return t.elem == Elem::Int && (t.form == Form::Scalar || t.form == Form::Row || t.form == Form::Rows);
}

Expressions::Text Expressions::converted(const Node& node, Elem as, const Where& where) const {
    if (as == Elem::Real && node.kind == Kind::Int) return {std::to_string(node.integer) + ".0f", kAtom, as};
    if (as == Elem::Real && node.kind == Kind::Name) {
        const Variable* v = scope_.find(node.text);
        if (v != nullptr && v->type.form == Form::Cols) {
            return {node.text + ".real(" + column_of(*v, where) + ")", kAtom, as};
        }
    }
    if (as == Elem::Real && node.kind == Kind::Binary && node.text == "-") { // f32(i - j): one addition an element
        const Node &a = *node.items[0], &b = *node.items[1];
        if (const Variable* j = columns(b, where); j != nullptr && beside_columns(a))
            return {b.text + ".before(" + column_of(*j, where) + ", " + term(a, Elem::Int, where, kAny) + ")", kAtom,
                    as};
    }
    Text t = text(node, where);
    if (t.elem == as) return t;
    if (as == Elem::Bool)
        return {tight(node, t.elem, where, kEqual + 1) + " != " + (t.elem == Elem::Int ? "0" : "0.0f"), kEqual, as};
    if (t.elem == Elem::Real)
        fail("no_rule", "`" + syntax::print(node) + "` is no integer", node.span, "write i32(...)");
    return {std::string("(") + c_name(as) + ")" + (t.tight < kUnary ? "(" + t.text + ")" : t.text), kUnary, as};
}

std::string Expressions::tight(const Node& node, Elem as, const Where& where, int least) const {
    const Text t = converted(node, as, where);
    return t.tight < least ? "(" + t.text + ")" : t.text;
}

Expressions::Text Expressions::infix(const Node& a, const std::string& op, const Node& b, Elem as,
                                     const Where& where) const {
    const int level = level_of(op);
    const bool either = op == "||"; // && in it stands in parentheses, as compilers would have it
    return {tight(a, as, where, either ? kAnd + 1 : level) + " " + op + " " +
                tight(b, as, where, either ? kAnd + 1 : level + 1),
            level, as};
}

Expressions::Text Expressions::text(const Node& node, const Where& where) const {
    if (const auto it = held_.find(&node); it != held_.end()) {
        const Type t = type(node);
        return {it->second + index_text(t, where), kAtom, t.elem};
    }
    if (const auto it = standing_.find(&node); it != standing_.end()) return {it->second.first, kAtom, type(node).elem};
    switch (node.kind) {
    case Kind::Int: return {std::to_string(node.integer), node.integer < 0 ? kUnary : kAtom, Elem::Int};
    case Kind::Float: {
        const std::string t = syntax::print(node);
        return t == "1e999" ? Text{"INF", kAtom, Elem::Real} : Text{t + "f", kAtom, Elem::Real};
    }
    case Kind::True: return {"true", kAtom, Elem::Bool};
    case Kind::False: return {"false", kAtom, Elem::Bool};
    case Kind::Name: return name(node, where);
    case Kind::Unary: {
        const Node& x = *node.items[0];
        const Type t = type(x);
        if (node.text == "not" || (node.text == "~" && t.elem == Elem::Bool))
            return {"!" + tight(x, Elem::Bool, where, kUnary), kUnary, Elem::Bool};
        const Elem as = std::max(t.elem, Elem::Int);
        if (node.text == "+") return converted(x, as, where);
        if (is_data(x)) return {node.text + term(x, as, where, kUnary + 1), kUnary, as};
        return {node.text + tight(x, as, where, kUnary + 1), kUnary, as};
    }
    case Kind::Binary: return binary(node, where);
    case Kind::BoolOp: return logic(node, where);
    case Kind::Compare: return compare(node, where);
    case Kind::Conditional: {
        const Elem as = type(node).elem;
        return {tight(*node.items[1], Elem::Bool, where, kConditional + 1) + " ? " +
                    tight(*node.items[0], as, where, kConditional + 1) + " : " +
                    tight(*node.items[2], as, where, kConditional + 1),
                kConditional, as};
    }
    case Kind::Call: return call(node, where);
    case Kind::Subscript: return index(node, where);
    default: fail("no_rule", "no rule prints `" + syntax::print(node) + "`", node.span);
    }
}

Expressions::Text Expressions::name(const Node& node, const Where& where) const {
    const Variable* v = scope_.find(node.text);
    if (v == nullptr) return {node.text == "inf" ? "INF" : node.text, kAtom, type(node).elem};
    const Type& t = v->type;
    if (!t.elementwise()) fail("no_rule", "`" + node.text + "` is no value", node.span);
    const Type fits = meet(t, scalar(Elem::Bool), node.span);
    if (fits.form != Form::Scalar && where.form != Form::Tile && where.form != fits.form)
        fail("no_rule", "`" + node.text + "` has more elements than the place it is used in", node.span);
    return {node.text + index_text(t, where), kAtom, t.elem};
}

Expressions::Text Expressions::binary(const Node& node, const Where& where) const {
    const Node &a = *node.items[0], &b = *node.items[1];
    const Type t = binary_type(node);
    const std::string& op = node.text;
    if (op == "&" || op == "|" || op == "^") {
        if (t.elem != Elem::Bool) return infix(a, op, b, t.elem, where);
        // of comparisons of elements no branch for each: && would be one, 64 times over
        if (op != "^" && where.form == Form::Tile && !loads(a) && !loads(b))
            return {tight(a, Elem::Bool, where, kUnary) + " " + op + " " + tight(b, Elem::Bool, where, kUnary),
                    level_of(op), Elem::Bool};
        return infix(a, op == "&" ? "&&" : op == "|" ? "||" : "!=", b, Elem::Bool, where);
    }
    if (op == "//" || op == "%") {
        if (t.elem == Elem::Real)
            return {fill(operator_named(op == "%" ? "mod" : "floordiv").cuda_f32,
                         {tight(a, t.elem, where, kAny), tight(b, t.elem, where, kAny)}),
                    kAtom, t.elem};
        if (type(a).natural && type(b).natural) return infix(a, op == "%" ? "%" : "/", b, Elem::Int, where);
        return {(op == "%" ? "mod(" : "floor_div(") + tight(a, Elem::Int, where, kAny) + ", " +
                    tight(b, Elem::Int, where, kAny) + ")",
                kAtom, Elem::Int};
    }
    if (op == "/" && where.form != Form::Scalar && a.kind == Kind::Float && a.real == 1.0)
        return {"rcp_fast(" + tight(b, Elem::Real, where, kAny) + ")", kAtom, Elem::Real};
    if (op == "*" && where.form != Form::Scalar) // a factor of the polynomial costs nothing an element
        for (const auto& [small, factor] : {std::pair(&a, &b), std::pair(&b, &a)})
            if (callee(*small) == "tanh_small" && type(*factor).form == Form::Scalar)
                return {"tanh_small(" + tight(*small->items.at(1), Elem::Real, where, kAny) + ", " +
                            tight(*factor, Elem::Real, where, kAny) + ")",
                        kAtom, Elem::Real};
    if (t.elem == Elem::Int && (is_data(a) || is_data(b))) {
        const int level = level_of(op);
        if (op == "*")
            return {"bounded((i64)" + tight(a, t.elem, where, kUnary) + " * " + tight(b, t.elem, where, level + 1) +
                        ")",
                    kAtom, t.elem};
        return {term(a, t.elem, where, level) + " " + op + " " + term(b, t.elem, where, level + 1), level, t.elem};
    }
    return infix(a, op, b, t.elem, where);
}

/// Whether it reads memory that may only be read where the expression asks for it.
bool Expressions::loads(const Node& node) const {
    if (const auto it = standing_.find(&node); it != standing_.end()) return !it->second.second;
    return node.kind == Kind::Subscript ||
           std::any_of(node.items.begin(), node.items.end(), [&](const auto& i) { return i && loads(*i); });
}

/// An integer that an operand holds may be any: a window without an end is the largest there is.
bool Expressions::is_data(const Node& node) const {
    const Node& x = node.kind == Kind::Subscript ? *node.items[0] : node;
    if (x.kind != Kind::Name || x.text.size() < 2 || x.text[0] != 'x' ||
        x.text.find_first_not_of("0123456789", 1) != std::string::npos)
        return false;
    const Type t = type(node);
    return t.elem == Elem::Int && t.elementwise();
}

std::string Expressions::term(const Node& node, Elem as, const Where& where, int least) const {
    if (!is_data(node)) return tight(node, as, where, least);
    return "bounded(" + tight(node, as, where, kAny) + ")";
}

Expressions::Text Expressions::compare(const Node& node, const Where& where) const {
    std::string out;
    for (std::size_t k = 0; k < node.names.size(); ++k) {
        const Node &a = *node.items[k], &b = *node.items[k + 1];
        const std::string& op = node.names[k];
        if (op.find_first_not_of("<>=!") != std::string::npos)
            fail("no_rule", "`" + op + "` is no comparison of CuIR", node.span);
        const auto t = comparison(a, op, b, where);
        if (node.names.size() == 1) return {t.text, t.tight, Elem::Bool};
        out += (out.empty() ? "" : " && ") + t.text;
    }
    return {out, kAnd, Elem::Bool};
}

/// Columns lie at constant distances from a thread's first: what they are compared with moves, once a row.
Expressions::Text Expressions::comparison(const Node& a, const std::string& op, const Node& b,
                                          const Where& where) const {
    const auto other = [&](const Node& columns, const Node& x) {
        return columns.text + ".after(" + tight(x, Elem::Int, where, kAny) + ")";
    };
    const auto own = [&](const Node& x, const Variable& v) { return x.text + ".offset(" + column_of(v, where) + ")"; };
    const int level = level_of(op);
    if (const Variable* j = columns(a, where); j != nullptr && beside_columns(b))
        return {own(a, *j) + " " + op + " " + other(a, b), level, Elem::Bool};
    if (const Variable* j = columns(b, where); j != nullptr && beside_columns(a))
        return {other(b, a) + " " + op + " " + own(b, *j), level, Elem::Bool};
    return infix(a, op, b, std::max(type(a).elem, type(b).elem), where);
}

Expressions::Text Expressions::logic(const Node& node, const Where& where) const {
    const bool both = node.text == "and";
    std::string out;
    for (const auto& i : node.items)
        out += (out.empty() ? "" : both ? " && " : " || ") + tight(*i, Elem::Bool, where, kAnd + 1);
    return {out, both ? kAnd : kOr, Elem::Bool};
}

std::string Expressions::arguments(const Node& node, Elem as, const Where& where) const {
    std::string out;
    for (std::size_t k = 1; k < node.items.size(); ++k)
        out += (k == 1 ? "" : ", ") + tight(*node.items[k], as, where, kAny);
    return out;
}

Expressions::Text Expressions::call(const Node& node, const Where& where) const {
    if (node.items[0]->kind == Kind::Attribute) {
        const Node& method = *node.items[0];
        type(node);
        if (method.items[0]->kind == Kind::Name && method.items[0]->text == "f32")
            return as_written(method.text, node, where);
        fail("no_rule", "no rule prints `." + method.text + "` here", node.span);
    }
    const std::string name = callee(node);
    const Type t = type(node);
    if (const Def* def = scope_.find_def(name)) {
        std::string out;
        if (node.items.size() != def->params.size() + 1)
            fail("no_rule", "`" + name + "` takes " + std::to_string(def->params.size()) + " arguments", node.span);
        for (std::size_t k = 0; k < def->params.size(); ++k) {
            const Type p = def->scope->find(def->params[k])->type;
            const Node& x = *node.items[k + 1];
            if (p.form != Form::Scalar && x.kind != Kind::Name)
                fail("no_rule", "only a name can be given to `" + name + "` as `" + def->params[k] + "`", x.span);
            out += (k == 0 ? "" : ", ") + (p.form == Form::Scalar ? tight(x, p.elem, where, kAny) : x.text);
        }
        return {name + "(" + out + ")", kAtom, t.elem};
    }
    return function(name, node, where);
}

Expressions::Text Expressions::function(const std::string& name, const Node& node, const Where& where) const {
    const Type t = type(node);
    const auto arg = [&](std::size_t k) -> const Node& { return *node.items[k + 1]; };
    if (name == "where") {
        return {tight(arg(0), Elem::Bool, where, kConditional + 1) + " ? " +
                    tight(arg(1), t.elem, where, kConditional + 1) + " : " +
                    tight(arg(2), t.elem, where, kConditional + 1),
                kConditional, t.elem};
    }
    if (name == "full") return converted(arg(1), t.elem, where);
    if (name == "rows" || name == "cols") {
        if (where.form == Form::Scalar) fail("no_rule", name + "() stands for itself", node.span);
        return {(name == "rows" ? "Rows(" : "Cols(") + tight(arg(0), Elem::Int, where, kAny) + ")" +
                    index_text(t, where),
                kAtom, Elem::Int};
    }
    if (name == "length") {
        if (arg(0).kind != Kind::Name || type(arg(0)).form != Form::Ranges)
            fail("no_rule", "length() is of key ranges that have a name", node.span);
        return {arg(0).text + ".length()", kAtom, Elem::Int};
    }
    if (name == "any") fail("no_rule", "no rule prints a vote here", node.span, "give it a name first");
    if (name == "complete") return {"quad_sum(" + tight(arg(0), t.elem, where, kAny) + ")", kAtom, t.elem};
    if (name == "minimum" || name == "maximum") {
        const bool least = name == "minimum", real = t.elem == Elem::Real;
        return {std::string(least ? (real ? "fminf(" : "min(") : (real ? "fmaxf(" : "max(")) +
                    arguments(node, t.elem, where) + ")",
                kAtom, t.elem};
    }
    if (name == "clamp") {
        if (t.elem != Elem::Real) return {"clamp(" + arguments(node, t.elem, where) + ")", kAtom, t.elem};
        return {"fminf(fmaxf(" + tight(arg(0), t.elem, where, kAny) + ", " + tight(arg(1), t.elem, where, kAny) +
                    "), " + tight(arg(2), t.elem, where, kAny) + ")",
                kAtom, t.elem};
    }
    if (name == "cdiv") return {"cdiv(" + arguments(node, Elem::Int, where) + ")", kAtom, Elem::Int};
    if (name == "f32") return converted(arg(0), Elem::Real, where);
    if (name == "i32") {
        if (type(arg(0)).elem != Elem::Real) return converted(arg(0), Elem::Int, where);
        return {"(int)" + tight(arg(0), Elem::Real, where, kUnary), kUnary, Elem::Int};
    }
    if (const char* own = own_text(name, where.form == Form::Scalar))
        return {std::string(own) + "(" + arguments(node, Elem::Real, where) + ")", kAtom, Elem::Real};
    const OpInfo& op = operator_named(name);
    const Elem in = op.bool_out && op.arity == 2 && op.real == nullptr ? Elem::Bool
                    : op.real_in                                       ? Elem::Real
                                                                       : std::max(t.elem, Elem::Int);
    if (in == Elem::Int && op.op == Op::Abs) return {"abs(" + arguments(node, in, where) + ")", kAtom, in};
    if (in == Elem::Int && (op.op == Op::Floor || op.op == Op::Ceil || op.op == Op::Round || op.op == Op::Trunc))
        return converted(arg(0), in, where);
    if (in == Elem::Int) fail("no_rule", "`" + name + "` of integers has an operator: write that", node.span);
    std::vector<std::string> x;
    const std::string table = op.cuda_f32;
    for (std::size_t k = 1; k < node.items.size(); ++k)
        x.push_back(tight(*node.items[k], in, where,
                          table.find("({" + std::to_string(k - 1) + "})") == table.npos ? kAtom : kAny));
    return {fill(table, x), kAtom, op.bool_out ? Elem::Bool : Elem::Real};
}

/// float32 arithmetic, one rounding an operation, never contracted. Where CUDA's float function may be off by a bit it
/// is the double function rounded once.
Expressions::Text Expressions::as_written(const std::string& name, const Node& node, const Where& where) const {
    const OpInfo& op = operator_named(name);
    if (static_cast<int>(node.items.size()) != op.arity + 1)
        fail("no_rule", "`f32." + name + "` takes " + std::to_string(op.arity) + " arguments", node.span);
    std::vector<std::string> x;
    for (std::size_t k = 1; k < node.items.size(); ++k) {
        const Elem in = op.op == Op::Where && k == 1 ? Elem::Bool : Elem::Real;
        x.push_back(tight(*node.items[k], in, where, kUnary));
    }
    const Elem out = op.bool_out ? Elem::Bool : Elem::Real;
    switch (op.op) {
    case Op::Add: return {"__fadd_rn(" + x[0] + ", " + x[1] + ")", kAtom, out};
    case Op::Sub: return {"__fsub_rn(" + x[0] + ", " + x[1] + ")", kAtom, out};
    case Op::Mul: return {"__fmul_rn(" + x[0] + ", " + x[1] + ")", kAtom, out};
    case Op::Div: return {"__fdiv_rn(" + x[0] + ", " + x[1] + ")", kAtom, out};
    case Op::Sqrt: return {"__fsqrt_rn(" + x[0] + ")", kAtom, out};
    case Op::Rsqrt: return {"__fdiv_rn(1.0f, __fsqrt_rn(" + x[0] + "))", kAtom, out};
    default: break;
    }
    if (op.real == nullptr) fail("no_rule", "`f32." + name + "` is no arithmetic", node.span);
    if (op.ulp == 0) {
        for (auto& t : x) t.insert(0, "(").append(")");
        return {fill(op.cuda_f32, x), kAtom, out};
    }
    for (auto& t : x) t.insert(0, "((double)").append(")");
    return {"(float)(" + fill(op.cuda_f64, x) + ")", kUnary, out};
}

Expressions::Text Expressions::index(const Node& node, const Where& where) const {
    const Node& object = *node.items[0];
    if (object.kind == Kind::Attribute && object.text == "shape")
        return {object.items[0]->text + ".size(" + print(*node.items[1]) + ")", kAtom, Elem::Int};
    const Type whole = type(object), t = type(node);
    if (whole.form == Form::CellColumns) {
        const std::string at = index_text(t, where);
        if (at.empty()) fail("no_rule", "a staged column is a value where columns are", node.span);
        return {cell(node) + "(" + at.substr(1, at.size() - 2) + ")", kAtom, t.elem};
    }
    if (whole.form != Form::Operand && whole.form != Form::Work && whole.form != Form::Tensor)
        fail("no_rule", "`" + syntax::print(node) + "` is no value", node.span);
    const std::string read = element(node, where);
    if (whole.form == Form::Tensor) return {"widen(*" + read + ")", kAtom, t.elem};
    if (whole.form == Form::Work && whole.element != "f32" && whole.element != "i32")
        return {"widen(" + read + ")", kAtom, t.elem};
    return {read, kAtom, t.elem};
}

std::string Expressions::element(const Node& node, const Where& where) const {
    const Type t = type(*node.items[0]);
    std::string at;
    for (const auto& i : parts(node.items[1])) at += (at.empty() ? "" : ", ") + tight(*i, Elem::Int, where, kAny);
    const std::string method =
        t.form == Form::Tensor ? ".element<" + (t.element == "f32" ? std::string("float") : t.element) + ">" : "";
    return node.items[0]->text + method + "(" + at + ")";
}

std::string Expressions::cell(const Node& node) const {
    if (node.kind == Kind::Name) {
        type(node);
        return node.text;
    }
    if (node.kind != Kind::Subscript) fail("no_rule", "`" + syntax::print(node) + "` is no cell", node.span);
    std::string out = cell(*node.items[0]);
    type(node);
    for (const auto& i : parts(node.items[1])) {
        if (i->kind == Kind::Slice) fail("no_rule", "a cell has whole indices", i->span);
        out += "[" + print(*i, Elem::Int) + "]";
    }
    return out;
}

std::string Expressions::slice(const Node& node, const std::string& method) const {
    if (node.kind != Kind::Subscript || node.items[0]->kind != Kind::Name)
        fail("no_rule", "`" + syntax::print(node) + "` is no slice of global memory", node.span);
    const Type t = type(*node.items[0]);
    if (t.form != Form::Tensor && t.form != Form::Operand && t.form != Form::Work)
        fail("no_rule", "`" + node.items[0]->text + "` is no global memory", node.span);
    std::string at;
    const auto axes = parts(node.items[1]);
    for (std::size_t k = 0; k < axes.size(); ++k) {
        const Node& i = *axes[k];
        if ((i.kind == Kind::Slice) != (k + 1 == axes.size()))
            fail("no_rule", "the last index of a slice of global memory is a range, the others are numbers", i.span);
        if (i.kind != Kind::Slice) {
            at += print(i, Elem::Int) + ", ";
        } else {
            if (!i.items[0] || !i.items[1]) fail("no_rule", "a range has a begin and an end", i.span);
            at += print(*i.items[0], Elem::Int) + ", " + print(*i.items[1], Elem::Int);
            if (i.items[2] && method != "rows") fail("no_rule", "only rows are taken by steps", i.span);
            if (i.items[2]) at += ", " + print(*i.items[2], Elem::Int);
        }
    }
    return node.items[0]->text + "." + method + "(" + at + ")";
}

} // namespace cubridge::ir::lower
