// The pool: hash-consing, leaves, constant tables. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/expr/expr.h"
#include <algorithm>
#include <cstring>

namespace cubridge::ir {

namespace {

std::uint64_t bits(double v) {
    std::uint64_t b = 0;
    static_assert(sizeof b == sizeof v);
    std::memcpy(&b, &v, sizeof b);
    return b;
}

std::size_t hash_of(const ExprNode& n) {
    std::uint64_t h = 0x9e3779b97f4a7c15u;
    const auto mix = [&h](std::uint64_t v) {
        h ^= v + 0x9e3779b97f4a7c15u + (h << 6) + (h >> 2);
        h *= 0xff51afd7ed558ccdu;
        h ^= h >> 32;
    };
    mix(static_cast<std::uint64_t>(n.kind) | static_cast<std::uint64_t>(n.type) << 8 |
        static_cast<std::uint64_t>(n.op) << 16 | static_cast<std::uint64_t>(n.reduce) << 24);
    mix(static_cast<std::uint64_t>(n.number));
    mix(static_cast<std::uint64_t>(n.integer));
    mix(bits(n.real));
    for (const Expr a : n.args) mix(static_cast<std::uint64_t>(a->id));
    for (const auto* list : {&n.icoef, &n.num, &n.den})
        for (const auto v : *list) mix(static_cast<std::uint64_t>(v));
    for (const double v : n.rcoef) mix(bits(v));
    return static_cast<std::size_t>(h);
}

bool same(const ExprNode& a, const ExprNode& b) {
    const auto equal_bits = [](double x, double y) { return bits(x) == bits(y); };
    return a.kind == b.kind && a.type == b.type && a.op == b.op && a.reduce == b.reduce && a.number == b.number &&
           a.integer == b.integer && equal_bits(a.real, b.real) && a.args == b.args && a.icoef == b.icoef &&
           a.num == b.num && a.den == b.den &&
           std::equal(a.rcoef.begin(), a.rcoef.end(), b.rcoef.begin(), b.rcoef.end(), equal_bits);
}

} // namespace

ExprPool::ExprPool() = default;

Expr ExprPool::intern(ExprNode node) {
    meter_.spend(1 + node.args.size());
    node.hash = hash_of(node);
    const auto [begin, end] = byhash_.equal_range(node.hash);
    for (auto it = begin; it != end; ++it)
        if (same(*it->second, node)) return it->second;
    if (nodes_.size() >= limit_)
        fail("limit", "the text expands to more than " + std::to_string(limit_) + " expressions", {},
             "write the attention with whole-tensor operations and without long loops");
    for (const Expr a : node.args) {
        node.free |= a->free;
        node.height = std::max(node.height, a->height);
        node.depth = std::max(node.depth, a->depth + 1);
    }
    if (node.kind == Kind::Index) node.free = index_bit(node.number);
    if (node.kind == Kind::Bound) node.free = bound_bit(node.number);
    if (node.kind == Kind::Reduce) {
        node.free &= ~bound_bit(node.number);
        node.height = std::max(node.height, node.number);
    }
    if (node.depth > kMaxDepth)
        fail("limit", "an expression is nested more than " + std::to_string(kMaxDepth) + " operations deep", {},
             "shorten the chain of operations; long loops over constants unroll");
    node.id = static_cast<int>(nodes_.size());
    nodes_.push_back(std::move(node));
    byhash_.emplace(nodes_.back().hash, &nodes_.back());
    return &nodes_.back();
}

Expr ExprPool::boolean(bool v) {
    ExprNode n{.kind = Kind::Const, .type = Type::Bool};
    n.integer = v ? 1 : 0;
    return intern(std::move(n));
}

Expr ExprPool::integer(std::int64_t v) {
    ExprNode n{.kind = Kind::Const, .type = Type::Int};
    n.integer = v;
    return intern(std::move(n));
}

Expr ExprPool::real(double v) {
    ExprNode n{.kind = Kind::Const, .type = Type::Real};
    n.real = v != v ? __builtin_nan("") : v;
    return intern(std::move(n));
}

Expr ExprPool::f32(float v) {
    ExprNode n{.kind = Kind::Const, .type = Type::F32};
    n.real = v != v ? __builtin_nan("") : static_cast<double>(v);
    return intern(std::move(n));
}

Expr ExprPool::index(int k) {
    if (k < 0 || k >= kMaxIndex) fail("limit", "a tensor has more than 16 axes", {}, "merge axes with reshape");
    ExprNode n{.kind = Kind::Index, .type = Type::Int};
    n.number = k;
    return intern(std::move(n));
}

Expr ExprPool::bound(int number) {
    if (number < 0 || number > kMaxBound)
        fail("limit", "reductions are nested more than " + std::to_string(kMaxBound) + " deep", {},
             "nest fewer reductions");
    ExprNode n{.kind = Kind::Bound, .type = Type::Int};
    n.number = number;
    return intern(std::move(n));
}

Expr ExprPool::dim(int number) {
    ExprNode n{.kind = Kind::Dim, .type = Type::Int};
    n.number = number;
    return intern(std::move(n));
}

Expr ExprPool::arg(int input, Type type) {
    ExprNode n{.kind = Kind::Arg, .type = type};
    n.number = input;
    return intern(std::move(n));
}

Expr ExprPool::load(int input, Type type, std::vector<Expr> at) {
    if (at.empty()) return arg(input, type);
    ExprNode n{.kind = Kind::Load, .type = type};
    n.number = input;
    n.args = std::move(at);
    return intern(std::move(n));
}

int ExprPool::add_table(ConstTable t) {
    for (std::size_t k = 0; k < tables_.size(); ++k) {
        const auto& o = tables_[k];
        if (o.type == t.type && o.shape == t.shape && o.values.size() == t.values.size() &&
            std::equal(o.values.begin(), o.values.end(), t.values.begin(),
                       [](double a, double b) { return bits(a) == bits(b); }))
            return static_cast<int>(k);
    }
    tables_.push_back(std::move(t));
    return static_cast<int>(tables_.size() - 1);
}

Expr ExprPool::table(int number, std::vector<Expr> at) {
    const auto& t = tables_[static_cast<std::size_t>(number)];
    const auto constant = [&](double v) {
        switch (t.type) {
        case Type::Bool: return boolean(v != 0);
        case Type::Int: return integer(static_cast<std::int64_t>(v));
        case Type::F32: return f32(static_cast<float>(v));
        case Type::Real: break;
        }
        return real(v);
    };
    if (std::all_of(at.begin(), at.end(), is_const)) { // known position: the value itself
        std::int64_t offset = 0;
        for (std::size_t k = 0; k < at.size(); ++k)
            offset = offset * t.shape[k] + std::clamp<std::int64_t>(at[k]->integer, 0, t.shape[k] - 1);
        return constant(t.values[static_cast<std::size_t>(offset)]);
    }
    ExprNode n{.kind = Kind::Table, .type = t.type};
    n.number = number;
    n.args = std::move(at);
    return intern(std::move(n));
}

bool is_const(Expr e) {
    return e->kind == Kind::Const;
}
bool is_int(Expr e, std::int64_t v) {
    return is_const(e) && e->type == Type::Int && e->integer == v;
}
bool is_real(Expr e, double v) {
    return is_const(e) && e->type == Type::Real && e->real == v;
}
bool is_true(Expr e) {
    return is_const(e) && e->type == Type::Bool && e->integer != 0;
}
bool is_false(Expr e) {
    return is_const(e) && e->type == Type::Bool && e->integer == 0;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
    if (b == 0 || (a == INT64_MIN && b == -1)) return 0;
    return a / b - ((a % b != 0 && (a < 0) != (b < 0)) ? 1 : 0);
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
    if (b == 0 || b == -1) return 0;
    const std::int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

namespace dims {
std::string name(int number) {
    static constexpr const char* names[] = {"B", "Hq", "Hk", "Sq", "Sk", "D", "Dv", "Hv", "kB", "kD", "vB", "vS"};
    if (number < static_cast<int>(std::size(names))) return names[number];
    return "x" + std::to_string(input(number)) + "." + std::to_string(axis(number));
}
} // namespace dims

} // namespace cubridge::ir
