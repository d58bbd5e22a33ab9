// The statements and names that decide what is in flight. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/slice.h"
#include "ir/lower/expression.h"
#include "ir/lower/place.h"
#include <algorithm>

namespace cubridge::ir::lower {

using cuir::Statement;
using syntax::Kind;
using syntax::Node;
using K = Statement::Kind;

const Node* effect(const Statement& s, const char* function) {
    const bool is = s.kind == K::Simple && s.node->kind == Kind::ExprStmt && callee(*s.node->items[0]) == function;
    return is ? s.node->items[0].get() : nullptr;
}

bool takes(const Statement& s) {
    return s.kind == K::Simple && s.node->kind == Kind::Assign && callee(*s.node->items.back()) == "take";
}

bool matters(const Statement& s) {
    if (s.kind == K::Simple && (s.node->kind == Kind::Break || takes(s))) return true;
    if (const Node* copy = effect(s, "copy_async")) return copy->keywords.empty();
    if (const Node* wait = effect(s, "wait")) return wait->items.size() == 2;
    if (effect(s, "gemm_async") != nullptr) return true;
    return std::any_of(s.body.begin(), s.body.end(), matters);
}

void written_in(const std::vector<Statement>& body, std::vector<std::string>& out) {
    for (const auto& s : body) {
        const auto names = written_by(s);
        out.insert(out.end(), names.begin(), names.end());
        written_in(s.body, out);
    }
}

const std::string& storage_of(const Node& node) {
    return node.kind == Kind::Subscript || node.kind == Kind::Attribute ? storage_of(*node.items[0]) : node.text;
}

namespace {

void waits(const std::vector<Statement>& body, std::set<std::string>& out) {
    for (const auto& s : body) {
        const Node* wait = effect(s, "wait");
        if (wait != nullptr && wait->items.size() == 2) out.insert(storage_of(*wait->items[1]));
        waits(s.body, out);
    }
}

bool add(std::set<std::string>& to, const Node& node) {
    bool grown = false;
    for (const auto& name : names_in(node)) grown = to.insert(name).second || grown;
    return grown;
}

bool assigns(const Statement& s, const Slice& slice) {
    const auto names = written_by(s);
    return std::any_of(names.begin(), names.end(), [&](const auto& n) { return slice.names.count(n) != 0; });
}

bool affects(const Statement& s, const Slice& slice) {
    return matters(s) || assigns(s, slice) ||
           std::any_of(s.body.begin(), s.body.end(), [&](const auto& x) { return affects(x, slice); });
}

void follow(const std::vector<Statement>& body, Slice& slice) {
    for (std::size_t k = 0; k < body.size(); ++k) {
        follow(body[k].body, slice);
        if (!affects(body[k], slice)) continue;
        slice.followed.insert(&body[k]);
        if (body[k].kind == K::Else && k > 0) slice.followed.insert(&body[k - 1]);
    }
}

bool grow(const std::vector<Statement>& body, Slice& slice) {
    bool grown = false;
    for (std::size_t k = 0; k < body.size(); ++k) {
        const Statement& s = body[k];
        grown = grow(s.body, slice) || grown;
        const bool other = k + 1 < body.size() && body[k + 1].kind == K::Else && affects(body[k + 1], slice);
        if (s.opens_block() && s.kind != K::Else && (other || affects(s, slice)))
            for (const auto& e : read_by(s)) grown = add(slice.names, *e) || grown;
        if (s.kind != K::Simple) continue;
        if (assigns(s, slice))
            for (const auto& e : read_by(s)) grown = add(slice.names, *e) || grown;
        if (s.node->kind == Kind::ExprStmt && matters(s))
            for (const auto& i : s.node->items[0]->items)
                if (slice.waited.count(storage_of(*i)) != 0) grown = add(slice.names, *i) || grown;
    }
    return grown;
}

} // namespace

Slice::Slice(const Statement& role) {
    waits(role.body, waited);
    for (bool grown = true; grown;) grown = grow(role.body, *this);
    follow(role.body, *this);
}

} // namespace cubridge::ir::lower
