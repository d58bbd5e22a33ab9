// Structural equality of trees; spans don't count.
// SPDX-License-Identifier: Apache-2.0
#include "ir/syntax/ast.h"
#include <algorithm>
#include <bit>

namespace cubridge::ir::syntax {
namespace {

bool same(const NodePtr& a, const NodePtr& b) {
    return a == b || (a && b && equal(*a, *b));
}

bool same(const std::vector<NodePtr>& a, const std::vector<NodePtr>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) { return same(x, y); });
}

bool same(const Keyword& a, const Keyword& b) {
    return a.name == b.name && same(a.value, b.value);
}

bool same(const Param& a, const Param& b) {
    return a.form == b.form && a.name == b.name && same(a.annotation, b.annotation) && same(a.fallback, b.fallback);
}

bool same(const Clause& a, const Clause& b) {
    return same(a.target, b.target) && same(a.iterable, b.iterable) && same(a.conditions, b.conditions);
}

template <class T> bool all_same(const std::vector<T>& a, const std::vector<T>& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const T& x, const T& y) { return same(x, y); });
}

} // namespace

bool equal(const Node& a, const Node& b) {
    return a.kind == b.kind && a.text == b.text && a.integer == b.integer &&
           std::bit_cast<std::uint64_t>(a.real) == std::bit_cast<std::uint64_t>(b.real) && a.names == b.names &&
           a.aliases == b.aliases && same(a.items, b.items) && all_same(a.keywords, b.keywords) &&
           all_same(a.params, b.params) && all_same(a.clauses, b.clauses) && same(a.decorators, b.decorators) &&
           same(a.body, b.body) && same(a.orelse, b.orelse);
}

} // namespace cubridge::ir::syntax
