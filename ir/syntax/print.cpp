// Statements, four spaces a level.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/printer.h"

namespace cubridge::ir::syntax {

void Printer::block(const std::vector<NodePtr>& statements) {
    for (std::size_t i = 0; i < statements.size(); ++i) {
        const bool around = statements[i]->kind == Kind::FunctionDef;
        if (i > 0 && (around || statements[i - 1]->kind == Kind::FunctionDef)) put("\n");
        statement(*statements[i]);
    }
}

void Printer::suite(const std::vector<NodePtr>& body) {
    put(":\n");
    ++indent_;
    if (body.empty()) {
        line();
        put("pass\n");
    }
    block(body);
    --indent_;
}

void Printer::statement(const Node& node) {
    switch (node.kind) {
    case Kind::Module: return block(node.body);
    case Kind::If: return branches(node);
    case Kind::FunctionDef: return function(node);
    default: break;
    }
    line();
    head(node);
    if (node.kind == Kind::For || node.kind == Kind::While || node.kind == Kind::With) {
        suite(node.body);
        if (node.orelse.empty()) return;
        line();
        put("else");
        return suite(node.orelse);
    }
    put("\n");
}

void Printer::branches(const Node& node) {
    const Node* branch = &node;
    for (std::string_view word = "if ";; word = "elif ") {
        line();
        put(word);
        expression(*branch->items[0], Tightness::Test);
        suite(branch->body);
        if (branch->orelse.size() != 1 || branch->orelse[0]->kind != Kind::If) break;
        branch = branch->orelse[0].get();
    }
    if (branch->orelse.empty()) return;
    line();
    put("else");
    suite(branch->orelse);
}

void Printer::function(const Node& node) {
    for (const NodePtr& decorator : node.decorators) {
        line();
        put("@");
        expression(*decorator, Tightness::Test);
        put("\n");
    }
    line();
    put("def " + node.text + "(");
    params(node.params);
    put(")");
    if (!node.items.empty() && node.items[0]) {
        put(" -> ");
        expression(*node.items[0], Tightness::Test);
    }
    suite(node.body);
}

void Printer::names(const std::vector<std::string>& names, const std::vector<std::string>& aliases) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        if (i > 0) put(", ");
        put(names[i]);
        if (i < aliases.size() && !aliases[i].empty()) put(" as " + aliases[i]);
    }
}

/// A statement without its indentation, blocks and line end.
void Printer::head(const Node& node) {
    const auto optional = [&](std::string_view before, std::size_t which) {
        if (which >= node.items.size() || !node.items[which]) return;
        put(before);
        bare(*node.items[which]);
    };
    switch (node.kind) {
    case Kind::ExprStmt: return bare(*node.items[0]);
    case Kind::Assign:
        for (std::size_t i = 0; i < node.items.size(); ++i) optional(i > 0 ? " = " : "", i);
        return;
    case Kind::AugAssign: bare(*node.items[0]); return optional(" " + node.text + "= ", 1);
    case Kind::AnnAssign:
        bare(*node.items[0]);
        put(": ");
        expression(*node.items[1], Tightness::Test);
        return optional(" = ", 2);
    case Kind::Return: put("return"); return optional(" ", 0);
    case Kind::Raise:
        put("raise");
        if (!node.items.empty() && node.items[0]) {
            put(" ");
            expression(*node.items[0], Tightness::Test);
        }
        return;
    case Kind::For:
        put("for ");
        bare(*node.items[0]);
        put(" in ");
        return bare(*node.items[1]);
    case Kind::While: put("while "); return expression(*node.items[0], Tightness::Test);
    case Kind::With:
        put("with ");
        for (std::size_t i = 0; i < node.items.size(); ++i) {
            if (i > 0) put(", ");
            expression(*node.items[i], Tightness::Test);
            if (!node.names[i].empty()) put(" as " + node.names[i]);
        }
        return;
    case Kind::Assert:
        put("assert ");
        expression(*node.items[0], Tightness::Test);
        if (!node.items[1]) return;
        put(", ");
        return expression(*node.items[1], Tightness::Test);
    case Kind::Pass: return put("pass");
    case Kind::Break: return put("break");
    case Kind::Continue: return put("continue");
    case Kind::Import: put("import "); return names(node.names, node.aliases);
    case Kind::ImportFrom: put("from " + node.text + " import "); return names(node.names, node.aliases);
    case Kind::Global: put("global "); return names(node.names, {});
    case Kind::Delete: put("del "); return commas(node.items);
    default: return;
    }
}

std::string print(const Node& node) {
    Printer printer;
    if (node.kind < Kind::ExprStmt) {
        printer.bare(node);
    } else {
        printer.statement(node);
    }
    return printer.take();
}

} // namespace cubridge::ir::syntax
