// SPDX-License-Identifier: Apache-2.0
#include "ir/transfer/make.h"
#include <algorithm>
#include <cmath>

namespace cubridge::ir::transfer {
namespace {

using syntax::Kind;
using syntax::Node;

std::shared_ptr<Node> node(Kind kind, Nodes items = {}) {
    auto out = std::make_shared<Node>();
    out->kind = kind;
    out->items = std::move(items);
    return out;
}

NodePtr with_text(Kind kind, std::string text, Nodes items) {
    auto out = node(kind, std::move(items));
    out->text = std::move(text);
    return out;
}

void visit(const NodePtr& x, std::vector<std::string>& out) {
    if (!x) return;
    if (x->kind == Kind::Name) out.push_back(x->text);
    for (const auto& i : x->items) visit(i, out);
    for (const auto& k : x->keywords) visit(k.value, out);
}

} // namespace

NodePtr name(std::string text) {
    return with_text(Kind::Name, std::move(text), {});
}

NodePtr real(double value) {
    if (std::isinf(value)) return value < 0 ? negative(name("inf")) : name("inf");
    if (value < 0) return negative(real(-value));
    auto out = node(Kind::Float);
    out->real = value;
    return out;
}

NodePtr integer(std::int64_t value) {
    auto out = node(Kind::Int);
    out->integer = value;
    return out;
}
NodePtr small(std::int64_t value) {
    return value < 0 ? negative(small(-value)) : integer(value);
}

NodePtr negative(NodePtr x) {
    return with_text(Kind::Unary, "-", {std::move(x)});
}

NodePtr inverse(NodePtr x) {
    return with_text(Kind::Unary, "~", {std::move(x)});
}

NodePtr binary(const char* operation, NodePtr a, NodePtr b) {
    return with_text(Kind::Binary, operation, {std::move(a), std::move(b)});
}

NodePtr compare(NodePtr a, const char* operation, NodePtr b) {
    auto out = node(Kind::Compare, {std::move(a), std::move(b)});
    out->names = {operation};
    return out;
}

NodePtr call(std::string function, Nodes arguments) {
    arguments.insert(arguments.begin(), name(std::move(function)));
    return node(Kind::Call, std::move(arguments));
}

NodePtr f32_call(std::string function, Nodes arguments) {
    arguments.insert(arguments.begin(), with_text(Kind::Attribute, std::move(function), {name("f32")}));
    return node(Kind::Call, std::move(arguments));
}

NodePtr item(std::string object, Nodes index) {
    NodePtr at = index.size() == 1 ? index[0] : node(Kind::Tuple, std::move(index));
    return node(Kind::Subscript, {name(std::move(object)), std::move(at)});
}

NodePtr extent(std::string object, NodePtr axis) {
    return node(Kind::Subscript, {with_text(Kind::Attribute, "shape", {name(std::move(object))}), std::move(axis)});
}

std::string text(const NodePtr& x) {
    auto out = syntax::print(*x);
    while (!out.empty() && out.back() == '\n') out.pop_back();
    return out;
}

cuir::Statement line(const std::string& text) {
    auto out = cuir::statement(text);
    if (!out) fail("internal", "a rule made `" + text + "`: " + out.error().message);
    return std::move(*out);
}

NodePtr parse(const std::string& text) {
    return line(text).node->items[0];
}

std::vector<std::string> names_in(const NodePtr& x) {
    std::vector<std::string> out;
    visit(x, out);
    return out;
}

bool reads(const NodePtr& x, const std::string& name) {
    const auto names = names_in(x);
    return std::find(names.begin(), names.end(), name) != names.end();
}

std::string base(const NodePtr& x) {
    if (!x) return "";
    if (x->kind == Kind::Name) return x->text;
    const bool part = x->kind == Kind::Subscript || x->kind == Kind::Attribute;
    return part ? base(x->items[0]) : "";
}

NodePtr replace(const NodePtr& x, const std::string& from, const NodePtr& by) {
    if (!x) return x;
    if (x->kind == Kind::Name) return x->text == from ? by : x;
    auto out = std::make_shared<Node>(*x);
    for (auto& i : out->items) i = replace(i, from, by);
    for (auto& k : out->keywords) k.value = replace(k.value, from, by);
    return out;
}

} // namespace cubridge::ir::transfer
