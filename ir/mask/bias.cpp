// Where a bias is constant: beyond some distance of query and key; clamps that have saturated, choices that are
// decided, data that does not vary in the tile. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/error.h"
#include "ir/mask/extent.h"
#include "ir/mask/tail.h"
#include <algorithm>
#include <unordered_set>

namespace cubridge::ir::mask {

namespace {

constexpr int kDistance = 12;          // variable: j - i
constexpr int kDepth = 3;              // choices made one after the other
constexpr std::size_t kMaxClasses = 8; // what is told apart
constexpr std::size_t kMaxNodes = 24;  // of a condition: beyond it, asking costs more than it saves

std::size_t nodes(Expr e, std::unordered_set<Expr>& seen) {
    if (seen.size() > kMaxNodes || !seen.insert(e).second) return seen.size();
    for (const Expr x : e->args) nodes(x, seen);
    return seen.size();
}

/// On the tile, `node` is `value` if `condition`.
struct Step {
    Expr node, condition, value;
};

class Finder {
public:
    Finder(ExprPool& pool, std::vector<Table>& tables) : p_(pool), extent_(pool, tables) {}

    void find(Expr bias, Expr condition, int depth) {
        if (out.size() >= kMaxClasses || is_false(condition)) return;
        if (!on_tile(bias)) {
            std::unordered_set<Expr> seen;
            if (nodes(condition, seen) > kMaxNodes) return;
            out.push_back({condition, bias});
            return;
        }
        if (depth == 0) return;
        std::vector<Step> steps;
        std::unordered_set<Expr> seen;
        collect(bias, steps, seen);
        for (const Step& s : steps) {
            const Expr next = p_.rewrite(bias, [&](Expr e) { return e == s.node ? s.value : e; });
            if (next != bias) find(next, p_.logical_and(condition, s.condition), depth - 1);
        }
    }

    std::vector<ConstantBias> out;

private:
    // Only the first kind of step that an expression offers: the order of independent steps does not matter.
    void collect(Expr e, std::vector<Step>& steps, std::unordered_set<Expr>& seen) {
        if (!steps.empty() || !on_tile(e) || (e->free & kAllBound) != 0 || !seen.insert(e).second) return;
        if (e->type == Type::Int) {
            if (e->kind == Kind::Min || e->kind == Kind::Max) saturate(e, steps);
            const bool one_axis = has(e, axis::i) != has(e, axis::j);
            if (steps.empty() && one_axis && extent_.opaque(e)) {
                const Ends x = extent_.entry(e);
                steps.push_back({e, p_.apply(Op::Eq, x.low, x.high), x.low});
            }
        }
        if (e->kind == Kind::Select && steps.empty()) {
            const Truth t = extent_.truth(e->args[0]);
            steps.push_back({e, t.every, e->args[1]});
            steps.push_back({e, p_.logical_not(t.any), e->args[2]});
        }
        for (const Expr x : e->args) collect(x, steps, seen);
    }

    // min(x, k) is k where x >= k all over the tile, and min(max(x, l), k) is max(l, ..) further in.
    void saturate(Expr e, std::vector<Step>& steps) {
        const bool upper = e->kind == Kind::Min;
        for (const Expr k : e->args) {
            if (on_tile(k)) continue;
            Expr all = p_.boolean(true);
            for (const Expr x : e->args) {
                if (x == k) continue;
                const Ends ends = extent_.ends(x);
                const Expr end = upper ? ends.low : ends.high;
                all = end ? p_.logical_and(all, p_.apply(upper ? Op::Ge : Op::Le, end, k)) : p_.boolean(false);
                if (is_false(all)) break;
            }
            steps.push_back({e, all, k});
        }
        for (const Expr m : e->args) // a clamp inside this one
            if (m->kind == (upper ? Kind::Max : Kind::Min) && on_tile(m)) saturate(m, steps);
    }

    ExprPool& p_;
    Extent extent_;
};

/// A function of j - i has one value on tiles far enough from the diagonal, on either side.
std::vector<ConstantBias> beyond(ExprPool& p, Expr bias) {
    std::vector<Expr> map(kDistance + 1, nullptr);
    map[axis::j] = p.add(p.index(kDistance), p.index(axis::i));
    const Expr f = p.substitute(bias, map);
    if (has(f, axis::i) || !has(f, kDistance)) return {};
    map[axis::j] = nullptr;
    map[kDistance] = p.isum(0, {{-1, p.index(kDistance)}});
    std::vector<ConstantBias> out;
    for (const bool before : {true, false}) {
        const auto t = tail(p, before ? p.substitute(f, map) : f, kDistance);
        if (!t) continue;
        // the least of i - j, of j - i
        const Expr least = before ? p.isum(1, {{1, p.index(tile::i0)}, {-1, p.index(tile::j1)}})
                                  : p.isum(1, {{1, p.index(tile::j0)}, {-1, p.index(tile::i1)}});
        const Expr far = t->from ? p.apply(Op::Ge, least, t->from) : p.boolean(true);
        if (!out.empty() && out[0].value == t->value)
            out[0].condition = p.logical_or(out[0].condition, far);
        else if (!is_false(far))
            out.push_back({far, t->value});
    }
    return out;
}

} // namespace

std::vector<ConstantBias> constant_bias(ExprPool& pool, Expr bias, std::vector<Table>& tables) {
    const std::size_t before = tables.size();
    std::vector<ConstantBias> out;
    Finder f(pool, tables);
    try {
        out = beyond(pool, bias);
        f.find(bias, pool.boolean(true), kDepth);
    } catch (const Failure&) { // a constant beyond 64 bits, too many nodes: no classes
        f.out.clear();
    }
    for (const ConstantBias& c : f.out)
        if (std::none_of(out.begin(), out.end(), [&](const auto& o) { return o.value == c.value; })) out.push_back(c);
    if (f.out.empty()) tables.resize(before);
    return out;
}

} // namespace cubridge::ir::mask
