// Assignments, calls of defs, returns: dispatch by what stands on both sides. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/rules.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using syntax::NodePtr;

namespace {

std::string product(const std::vector<NodePtr>& shape, std::size_t count, const Expressions& x) {
    std::string out;
    for (std::size_t k = 0; k < count; ++k) out += (k == 0 ? "" : " * ") + x.print(*shape[k], Elem::Int);
    return out.empty() ? "1" : out;
}

Region alloc(const Binding& b, const Node& call, const Expressions& x) {
    const auto shape = parts(call.items[2]);
    const std::string element = b.type.element == "f32" ? "float" : b.type.element == "i32" ? "int" : b.type.element;
    if (!b.declares) fail("no_rule", "storage is allocated once, where all its users see it", call.span);
    switch (b.type.form) {
    case Form::Cells:
        if (!b.note.empty()) { // rows and columns, then what tells cells apart
            std::string groups;
            for (std::size_t k = 0; k + 2 < shape.size(); ++k) groups += ", " + x.print(*shape[k], Elem::Int);
            return {"storage",
                    {"const Shared<" + element + ", " + x.print(*shape[shape.size() - 2], Elem::Int) + ", " +
                     x.print(*shape.back(), Elem::Int) + groups + "> " + b.name + "(smem);"},
                    {}};
        }
        return {"storage",
                {"const Shared<" + element + ", " + product(shape, shape.size() - 2, x) + ", " +
                 x.print(*shape[shape.size() - 2], Elem::Int) + ", " + x.print(*shape.back(), Elem::Int) + "> " +
                 b.name + "(smem);"},
                {}};
    case Form::CellColumns:
        return {"storage",
                {"const SharedColumn<" + element + ", " + x.print(*shape[0], Elem::Int) + ", " + b.type.columns + "> " +
                 b.name + "(smem);"},
                {}};
    default: return {"storage", {declaration(b.type, b.name) + ";"}, {}};
    }
}

/// Barriers and channels. What arrives there, or takes, is in the note.
Region agreement(const Binding& b, const Node& call, const Expressions& x) {
    if (!b.declares) fail("no_rule", "a barrier is made once, where all its users see it", call.span);
    const std::string f = callee(call);
    if (f == "named_barrier") {
        const std::string array = "array ";
        if (b.note.rfind(array, 0) == 0)
            return {"storage", {"const NamedBarriers " + b.name + "(" + b.note.substr(array.size()) + ");"}, {}};
        return {"storage", {"constexpr int " + b.name + " = " + b.note + ";"}, {}};
    }
    if (f == "channel") {
        const std::string entries = x.print(*call.items.at(1), Elem::Int);
        return {"storage", {"Channel<" + entries + "> " + b.name + "(smem, " + b.note + ");"}, {}};
    }
    std::string many = "1";
    for (const auto& k : call.keywords)
        if (k.name == "n") many = x.print(*k.value, Elem::Int);
    return {"storage", {"const Barriers<" + many + "> " + b.name + "(smem, " + b.note + ");"}, {}};
}

/// A call of a def that returns by reference.
Region call_def(const Def& def, const Node& call, const std::vector<Binding>& results, const Facts& f) {
    const Expressions x(*f.scope);
    const auto target = [&](const std::string& result) -> const Binding* {
        const auto it = std::find(def.results.begin(), def.results.end(), result);
        return it == def.results.end() ? nullptr : &results[static_cast<std::size_t>(it - def.results.begin())];
    };
    Region out{"call", {}, {}};
    for (std::size_t k = 0; k < results.size(); ++k) {
        const auto same = [&](const auto& other) { return other.name == results[k].name; };
        if (std::count_if(results.begin(), results.end(), same) > 1)
            fail("no_rule", "`" + results[k].name + "` is assigned twice", call.span);
        if (def.is_param(def.results[k]) &&
            std::count_if(call.items.begin() + 1, call.items.end(),
                          [&](const NodePtr& a) { return a->kind == Kind::Name && a->text == results[k].name; }) > 1)
            fail("no_rule", "`" + results[k].name + "` is written while it is read as another argument", call.span);
    }
    print_declarations(out.lines, results);
    Lines before, after;
    std::vector<std::string> taken = names_in(call);
    for (const auto& r : results) taken.push_back(r.name);
    std::string arguments;
    const auto copy = [](const Type& t, const std::string& to, const std::string& from) {
        if (t.form == Form::Scalar) return to + " = " + from + ";";
        if (t.form == Form::Row) return "EACH_ROW(r) " + to + "[r] = " + from + "[r];";
        if (t.form == Form::Column) return "EACH_COL(c, " + t.columns + ") " + to + "[c] = " + from + "[c];";
        return "EACH(e, " + to + ") " + to + "[e] = " + from + "[e];";
    };
    const auto temporary = [&](const std::string& result, const Type& t) {
        std::string name = fresh(result, taken);
        taken.push_back(name);
        before.push_back("    " + declaration(t, name) + ";");
        return name;
    };
    for (std::size_t k = 0; k < def.params.size(); ++k) {
        const Type p = def.scope->find(def.params[k])->type;
        const Node& a = *call.items[k + 1];
        const Binding* to = target(def.params[k]);
        std::string text;
        if (p.form != Form::Scalar && a.kind != Kind::Name)
            fail("no_rule", "only a name can be given as `" + def.params[k] + "`", a.span, "name it first");
        if (to != nullptr && !(a.kind == Kind::Name && a.text == to->name)) {
            text = temporary(def.params[k], p); // the argument keeps its value
            before.push_back("    " + copy(p, text, p.form == Form::Scalar ? x.print(a, p.elem) : a.text));
            after.push_back("    " + copy(p, to->name, text));
        } else {
            text = p.form == Form::Scalar ? x.print(a, p.elem) : a.text;
        }
        arguments += (k == 0 ? "" : ", ") + text;
    }
    for (std::size_t k = 0; k < def.results.size(); ++k) {
        if (def.is_param(def.results[k])) continue;
        const Binding& to = results[k];
        const bool alias = std::any_of(call.items.begin() + 1, call.items.end(), [&](const NodePtr& a) {
            return a->kind == Kind::Name && a->text == to.name && to.type.form != Form::Scalar;
        });
        std::string text = to.name;
        if (alias || to.type.elem != def.types[k].elem) { // read while it is written, or converted
            text = temporary(def.results[k], def.types[k]);
            after.push_back("    " + copy(def.types[k], to.name, text));
        }
        arguments += (arguments.empty() ? "" : ", ") + text;
    }
    const std::string line = def.statement->name + "(" + arguments + ");";
    if (before.empty()) {
        out.lines.push_back(line);
        return out;
    }
    out.lines.push_back("{");
    out.lines.insert(out.lines.end(), before.begin(), before.end());
    out.lines.push_back("    " + line);
    out.lines.insert(out.lines.end(), after.begin(), after.end());
    out.lines.push_back("}");
    return out;
}

/// `const Barriers<ST> a(..);` and one of the same type: `const Barriers<ST> a(..), b(..);`
void join_declaration(Lines& out, const std::string& line) {
    const auto type = [](const std::string& l) { return l.find('>') == l.npos ? "" : l.substr(0, l.find('>') + 1); };
    if (out.empty() || type(line).empty() || type(out.back()) != type(line)) return out.push_back(line);
    out.back().back() = ',';
    out.back() += line.substr(type(line).size());
}

bool is_agreement(const std::string& function) {
    return function == "named_barrier" || function == "barrier" || function == "channel";
}

NodePtr binary(const std::string& op, const NodePtr& a, const NodePtr& b) {
    auto n = std::make_shared<Node>();
    n->kind = Kind::Binary;
    n->span = a->span;
    n->text = op;
    n->items = {a, b};
    return n;
}

Region assign(const Statement& s, const Analysis& analysis) {
    const Facts& f = analysis.of(s);
    const Node &target = *s.node->items[0], &value = *s.node->items[1];
    Expressions x(*f.scope);
    Lines scratch;
    const std::string function = callee(value);
    const Def* def = f.scope->find_def(function);
    if (target.kind == Kind::Subscript) return print_store(target, value, f);
    if (target.kind == Kind::Name) {
        const Binding& b = f.results.at(0);
        if (function == "alloc") return alloc(b, value, x);
        if (is_agreement(function)) return agreement(b, value, x);
        if (function == "any") {
            print_declarations(scratch, {b});
            print_vote(scratch, x, b.name, value);
            return {"vote", scratch, {}};
        }
        if (def != nullptr && !def->by_value) return call_def(*def, value, f.results, f);
        if (b.type.form == Form::Ranges) {
            if (def == nullptr || !b.constant) fail("no_rule", "key ranges come from a def, once", value.span);
            return {"call", {"auto " + b.name + " = " + x.print(value) + ";"}, {}};
        }
        Region out{"elementwise", {}, {}};
        print_votes(out.lines, x, value, f);
        print_value(out.lines, x, b, value);
        return out;
    }
    if (target.kind != Kind::Tuple || f.results.size() != target.items.size())
        fail("no_rule", "names are assigned together, nothing else", target.span);
    if (value.kind == Kind::Tuple) {
        Region out{"elementwise", {}, {}};
        print_votes(out.lines, x, value, f);
        for (std::size_t k = 0; k < value.items.size(); ++k) {
            const auto read = names_in(*value.items[k]);
            for (std::size_t j = 0; j < k; ++j)
                if (std::find(read.begin(), read.end(), f.results[j].name) != read.end())
                    fail("no_rule", "`" + f.results[j].name + "` is assigned and read by one statement", value.span,
                         "write two statements");
            if (callee(*value.items[k]) == "alloc")
                fail("no_rule", "storage is allocated one name a statement", value.span);
            if (is_agreement(callee(*value.items[k]))) {
                out.rule = "storage";
                join_declaration(out.lines, agreement(f.results.at(k), *value.items[k], x).lines[0]);
                continue;
            }
            print_value(out.lines, x, f.results.at(k), *value.items[k]);
        }
        return out;
    }
    Region out{"pick", {}, {}};
    if (function == "pick" && value.items.size() == 3) {
        print_declarations(out.lines, f.results);
        if (x.type(*value.items[1]).form != Form::Ranges || value.items[1]->kind != Kind::Name)
            fail("no_rule", "pick() is for key ranges that have a name", value.span);
        out.lines.push_back(value.items[1]->text + ".pick(" + x.print(*value.items[2], Elem::Int) + ", " +
                            f.results.at(0).name + ", " + f.results.at(1).name + ");");
        return out;
    }
    if (function == "take" && value.items.size() == 2 && value.items[1]->kind == Kind::Name) {
        out.rule = "channel";
        print_declarations(out.lines, f.results);
        std::string names;
        bool takes_request = false;
        for (const auto& r : f.results) {
            names += (names.empty() ? "" : ", ") + r.name;
            takes_request = takes_request || r.name == "b";
        }
        out.lines.push_back(value.items[1]->text + ".take(" + names + ");");
        if (takes_request) out.lines.push_back("Sk = key_length(args, b);");
        return out;
    }
    if (function == "divmod" && value.items.size() == 3) {
        out.rule = "elementwise";
        for (std::size_t k = 0; k < 2; ++k) {
            const auto read = names_in(value);
            if (std::find(read.begin(), read.end(), f.results.at(0).name) != read.end())
                fail("no_rule", "divmod of a name that it assigns", value.span);
            print_value(out.lines, x, f.results.at(k), *binary(k == 0 ? "//" : "%", value.items[1], value.items[2]));
        }
        return out;
    }
    if (def != nullptr) return call_def(*def, value, f.results, f);
    fail("no_rule", "no rule takes this apart", value.span);
}

Region give_back(const Statement& s, const Analysis& analysis) {
    const Facts& f = analysis.of(s);
    const Def* def = nullptr;
    for (const auto& [name, d] : f.scope->outer->defs)
        if (d.scope == f.scope) def = &d;
    if (def == nullptr) fail("no_rule", "a return of no def", s.node->span);
    Expressions x(*f.scope);
    const NodePtr& value = s.node->items[0];
    Region out{"return", {}, {}};
    if (def->by_value && value->kind == Kind::List) {
        std::string columns[3];
        for (const auto& range : value->items) {
            if (range->kind != Kind::Tuple || range->items.size() != 3)
                fail("no_rule", "a key range is (begin, end, masked)", range->span);
            for (std::size_t k = 0; k < 3; ++k)
                columns[k] +=
                    (columns[k].empty() ? "" : ", ") + x.print(*range->items[k], k == 2 ? Elem::Bool : Elem::Int);
        }
        out.lines.push_back("return Ranges<" + std::to_string(value->items.size()) + ">{{" + columns[0] + "}, {" +
                            columns[1] + "}, {" + columns[2] + "}};");
        return out;
    }
    if (def->by_value && callee(*value) == "classify") {
        std::string arguments;
        for (std::size_t k = 3; k < value->items.size(); ++k) {
            const Type t = x.type(*value->items[k]);
            arguments += (t.form == Form::Scalar ? x.print(*value->items[k], t.elem) : value->items[k]->text) + ", ";
        }
        out.lines.push_back("return classify(" + x.print(*value->items[1], Elem::Int) +
                            ", [=](int n, bool& some, bool& every) { " + value->items[2]->text + "(" + arguments +
                            "n, some, every); });");
        return out;
    }
    print_votes(out.lines, x, *value, f);
    if (def->by_value) {
        out.lines.push_back(
            "return " + (def->types[0].form == Form::Scalar ? x.print(*value, def->types[0].elem) : value->text) + ";");
        return out;
    }
    const auto values = parts(value);
    for (std::size_t k = 0; k < values.size(); ++k)
        if (!(values[k]->kind == Kind::Name && values[k]->text == def->results[k]))
            print_value(out.lines, x, {def->results[k], def->types[k], false, false}, *values[k]);
    if (&s != &def->statement->body.back()) out.lines.push_back("return;");
    return out;
}

} // namespace

Region print_simple(const Statement& s, const Analysis& analysis) {
    const Facts& f = analysis.of(s);
    const Node& n = *s.node;
    switch (n.kind) {
    case Kind::Assign: return assign(s, analysis);
    case Kind::AugAssign: {
        Expressions x(*f.scope);
        const NodePtr sum = binary(n.text, n.items[0], n.items[1]);
        if (n.items[0]->kind == Kind::Subscript)
            return print_store(*n.items[0], *binary(n.text, n.items[0]->items[0], n.items[1]), f);
        Region out{"elementwise", {}, {}};
        print_value(out.lines, x, f.results.at(0), *sum);
        return out;
    }
    case Kind::ExprStmt: {
        Region out;
        if (n.items[0]->kind == Kind::Call && print_move(*n.items[0], s, analysis, out)) return out;
        fail("no_rule", "no rule prints this call", n.span);
    }
    case Kind::Return: return give_back(s, analysis);
    case Kind::Break: return {"control", {"break;"}, {}};
    case Kind::Pass: return {"control", {}, {}};
    default: fail("no_rule", "no rule prints this statement", n.span);
    }
}

} // namespace cubridge::ir::lower
