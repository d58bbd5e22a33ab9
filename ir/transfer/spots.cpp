// Statements by what they do. SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/places.h"
#include <algorithm>

namespace cubridge::ir::transfer {

using cuir::Statement;
using syntax::Kind;

namespace {

void collect_calls(const NodePtr& x, std::vector<NodePtr>& out) {
    if (!x) return;
    if (x->kind == Kind::Call) out.push_back(x);
    for (const auto& i : x->items) collect_calls(i, out);
    for (const auto& k : x->keywords) collect_calls(k.value, out);
}

} // namespace

bool is_call(const NodePtr& x, std::string_view function) {
    if (!x || x->kind != Kind::Call) return false;
    const auto& f = x->items[0];
    return (f->kind == Kind::Name || f->kind == Kind::Attribute) && f->text == function;
}

NodePtr inner_call(const NodePtr& x, std::string_view function) {
    std::vector<NodePtr> all;
    collect_calls(x, all);
    for (const auto& c : all)
        if (is_call(c, function)) return c;
    return nullptr;
}

Spot first(std::vector<Statement>& block, const Matches& matches) {
    for (std::size_t k = 0; k < block.size(); ++k) {
        if (matches(block[k])) return {&block, k};
        if (const Spot s = first(block[k].body, matches)) return s;
    }
    return {};
}

Spot last(std::vector<Statement>& block, const Matches& matches) {
    Spot out;
    for (std::size_t k = 0; k < block.size(); ++k) {
        if (matches(block[k])) out = {&block, k};
        if (const Spot s = last(block[k].body, matches)) out = s;
    }
    return out;
}

NodePtr value_of(const Statement& s) {
    if (!s.node || (s.node->kind != Kind::Assign && s.node->kind != Kind::AugAssign)) return nullptr;
    return s.node->items.back();
}

NodePtr target_of(const Statement& s) {
    if (!s.node || (s.node->kind != Kind::Assign && s.node->kind != Kind::AugAssign)) return nullptr;
    return s.node->items[0];
}

std::vector<std::string> results_of(const Statement& s) {
    std::vector<std::string> out;
    const NodePtr t = target_of(s);
    if (!t) return out;
    for (const auto& x : t->kind == Kind::Tuple ? t->items : Nodes{t})
        if (x->kind == Kind::Name) out.push_back(x->text);
    return out;
}

NodePtr call_of(const Statement& s) {
    if (s.kind != Statement::Kind::Simple || !s.node) return nullptr;
    const NodePtr x = s.node->kind == Kind::ExprStmt ? s.node->items[0] : value_of(s);
    return x && x->kind == Kind::Call ? x : nullptr;
}

bool calls(const Statement& s, std::string_view function) {
    return s.kind == Statement::Kind::Simple && inner_call(s.node, function) != nullptr;
}

bool assigns(const Statement& s, const std::string& name) {
    if (s.kind != Statement::Kind::Simple) return false;
    const auto r = results_of(s);
    return std::find(r.begin(), r.end(), name) != r.end();
}

const NodePtr* keyword(const NodePtr& call, std::string_view name) {
    for (const auto& k : call->keywords)
        if (k.name == name) return &k.value;
    return nullptr;
}

} // namespace cubridge::ir::transfer
