// SPDX-License-Identifier: Apache-2.0
#include "ir/cost/operations.h"
#include <algorithm>
#include <map>
#include <set>

namespace cubridge::ir::cost {
namespace {

using cuir::Statement;
using syntax::Kind;
using syntax::NodePtr;

/// How far a value extends: a bit for rows, one for columns. Both: a tile.
constexpr unsigned kRow = 1, kColumn = 2, kTile = 3;
using Extents = std::map<std::string, unsigned>;

const std::set<std::string> kSpecial = {"exp2", "exp", "log2", "log", "sqrt", "rsqrt", "sin", "cos", "tanh_approx"};
constexpr double kSmallTanh = 5;                                      // a polynomial
constexpr double kSmallLogistic = 3.25, kSmallLogisticSpecial = 1.25; // four by one reciprocal
constexpr double kConversion = 0.5;

bool multiplies(const syntax::Node& x) {
    return x.kind == Kind::Binary && x.text == "*";
}

/// f of `f(..)` and of `m.f(..)`, `x.f(..)`.
const std::string& function_of(const syntax::Node& call) {
    return call.items[0]->text;
}

class Walk {
public:
    explicit Walk(const cuir::Kernel& kernel) {
        for (const auto& s : kernel.body)
            if (s.kind == Statement::Kind::Def) defs_[s.name] = &s;
    }

    TileWork role(const Statement& role) {
        Extents names;
        for (const auto& s : role.body) statements(s, names);
        return loop_;
    }

private:
    /// A role's statements up to its loop with products, and that loop with what it is nested in.
    void statements(const Statement& s, Extents& names) {
        if (s.kind == Statement::Kind::Simple) return (void)statement(s, names, nothing_);
        if (s.kind != Statement::Kind::For && s.kind != Statement::Kind::While) {
            for (const auto& inner : s.body) statements(inner, names);
            return;
        }
        const auto nested = std::find_if(s.body.begin(), s.body.end(), [](const Statement& b) {
            return (b.kind == Statement::Kind::For || b.kind == Statement::Kind::While) && has_products(b);
        });
        if (nested != s.body.end()) {
            for (const auto& inner : s.body) statements(inner, names);
        } else if (has_products(s)) {
            block(s.body, names, loop_.every);
        }
    }

    static bool has_products(const Statement& s) {
        if (s.kind == Statement::Kind::Simple) return s.node && is_product(*s.node);
        return std::any_of(s.body.begin(), s.body.end(), has_products);
    }
    static bool is_product(const syntax::Node& x) {
        if (x.kind == Kind::Call && (function_of(x) == "gemm" || function_of(x) == "gemm_async")) return true;
        return std::any_of(x.items.begin(), x.items.end(), [](const NodePtr& i) { return i && is_product(*i); });
    }

    void block(const std::vector<Statement>& all, Extents& names, Operations& to) {
        for (std::size_t k = 0; k < all.size(); ++k) {
            const Statement& s = all[k];
            if (s.kind == Statement::Kind::Simple) {
                statement(s, names, to);
            } else if (s.kind == Statement::Kind::If) {
                const bool either = k + 1 < all.size() && all[k + 1].kind == Statement::Kind::Else;
                const auto& condition = s.node->items[0];
                (void)extent(condition, names, to);
                const bool mask = condition->kind == Kind::Name && condition->text == "masked";
                block(s.body, names, mask && &to == &loop_.every ? loop_.masked : nothing_);
                if (either) block(all[++k].body, names, to);
            } else {
                block(s.body, names, to);
            }
        }
    }

    /// Counts what it computes; notes the extents of what it assigns. A return's extents are its result.
    std::vector<unsigned> statement(const Statement& s, Extents& names, Operations& to) {
        const syntax::Node& x = *s.node;
        if (x.kind == Kind::Return) return extents(x.items[0], names, to);
        if (x.kind == Kind::AugAssign) {
            const unsigned e = extent(x.items[0], names, nothing_) | extent(x.items[1], names, to);
            if (e == kTile) to.plain += multiplies(*x.items[1]) ? 0 : 1;
        }
        if (x.kind == Kind::ExprStmt) (void)extent(x.items[0], names, to);
        if (x.kind != Kind::Assign || x.items.size() != 2) return {};
        const NodePtr& target = x.items[0];
        const auto of = extents(x.items[1], names, to);
        if (target->kind == Kind::Subscript && of.size() == 1 && of[0] == kTile && x.items[1]->kind == Kind::Name)
            to.plain += kConversion;
        if (target->kind == Kind::Name) names[target->text] = of.empty() ? 0 : of[0];
        if (target->kind == Kind::Tuple)
            for (std::size_t k = 0; k < target->items.size(); ++k)
                if (target->items[k]->kind == Kind::Name) names[target->items[k]->text] = k < of.size() ? of[k] : 0;
        return {};
    }

    std::vector<unsigned> extents(const NodePtr& x, const Extents& names, Operations& to) {
        if (!x) return {};
        if (x->kind == Kind::Tuple) {
            std::vector<unsigned> out;
            for (const auto& i : x->items) out.push_back(extent(i, names, to));
            return out;
        }
        if (x->kind == Kind::Call)
            if (const auto def = defs_.find(function_of(*x)); def != defs_.end())
                return called(*def->second, x, names, to);
        return {extent(x, names, to)};
    }

    std::vector<unsigned> called(const Statement& def, const NodePtr& call, const Extents& names, Operations& to) {
        Extents inside;
        for (std::size_t k = 0; k < def.node->params.size() && k + 1 < call->items.size(); ++k)
            inside[def.node->params[k].name] = extent(call->items[k + 1], names, to);
        if (def.body.empty()) return {};
        std::vector<Statement> all(def.body.begin(), def.body.end() - 1);
        block(all, inside, to);
        const Statement& last = def.body.back();
        return last.kind == Statement::Kind::Simple ? statement(last, inside, to) : std::vector<unsigned>{};
    }

    unsigned extent(const NodePtr& x, const Extents& names, Operations& to) {
        if (!x) return 0;
        const auto all = [&](std::size_t from) {
            unsigned e = 0;
            for (std::size_t k = from; k < x->items.size(); ++k) e |= extent(x->items[k], names, to);
            return e;
        };
        switch (x->kind) {
        case Kind::Name: {
            const auto it = names.find(x->text);
            return it == names.end() ? 0 : it->second;
        }
        case Kind::Call: return of_call(*x, names, to);
        case Kind::Subscript: {
            const unsigned e = all(1);
            if (e == kTile) to.gathers += 1;
            return x->items[1]->kind == Kind::Slice ? extent(x->items[0], names, to) : e;
        }
        case Kind::Unary: return all(0); // signs and complements are parts of other instructions
        case Kind::Binary: {
            const unsigned e = all(0);
            if (e != kTile) return e;
            const bool sum = x->text == "+" || x->text == "-";
            const bool added = sum && (is_tile_product(x->items[0], names) || is_tile_product(x->items[1], names));
            if (x->text == "/") to.special += 1;
            if (!added) to.plain += 1;
            return e;
        }
        case Kind::Compare:
        case Kind::BoolOp:
        case Kind::Tuple: {
            const unsigned e = all(0);
            if (e == kTile && x->kind != Kind::Tuple) to.plain += 1;
            return e;
        }
        default: return 0;
        }
    }

    bool is_tile_product(const NodePtr& x, const Extents& names) {
        Operations none;
        return multiplies(*x) && extent(x, names, none) == kTile;
    }

    unsigned of_call(const syntax::Node& x, const Extents& names, Operations& to) {
        const std::string& f = function_of(x);
        if (f == "rows" || f == "full") return kRow;
        if (f == "cols") return kColumn;
        if (f == "alloc") {
            const bool tile = x.items.size() > 2 && x.items[1]->text == "register" && x.items[2]->items.size() == 2;
            return tile ? kTile : 0;
        }
        if (f == "gemm" || f == "gemm_async" || f == "wait" || f == "arrive") return 0;
        if (const auto def = defs_.find(f); def != defs_.end()) return 0;
        unsigned e = x.items[0]->kind == Kind::Attribute ? extent(x.items[0]->items[0], names, to) : 0;
        for (std::size_t k = 1; k < x.items.size(); ++k) e |= extent(x.items[k], names, to);
        if (e != kTile) return e;
        if (f == "any" || f == "all") return 0; // a predicate of the comparison
        if (kSpecial.contains(f)) {
            to.special += 1;
            return e;
        }
        if (f == "abs") return e; // a modifier of an operand
        if (f == "logistic_small") {
            to.plain += kSmallLogistic, to.special += kSmallLogisticSpecial;
            return e;
        }
        to.plain += f == "tanh_small" ? kSmallTanh : 1;
        return f == "amax" || f == "sum" ? kRow : e;
    }

    std::map<std::string, const Statement*> defs_;
    TileWork loop_;
    Operations nothing_;
};

} // namespace

TileWork work_of(const cuir::Kernel& kernel) {
    TileWork out;
    for (const auto& s : kernel.body)
        if (s.kind == Statement::Kind::With) {
            const TileWork of_role = Walk(kernel).role(s);
            out.every += of_role.every;
            out.masked += of_role.masked;
        }
    return out;
}

} // namespace cubridge::ir::cost
