// SPDX-License-Identifier: Apache-2.0
#include "ir/mask/sign.h"
#include "ir/mask/mask.h"
#include <algorithm>

namespace cubridge::ir::mask {

namespace {

constexpr int kRows = 12, kColumns = 13; // variables of this file: i1 = i0 + 1 + kRows, j1 = j0 + 1 + kColumns
constexpr int kTries = 6;                // nested Min and Max that are tried argument by argument

bool prove(ExprPool& pool, Expr e, int tries);

bool prove_sum(ExprPool& pool, Expr e, int tries) {
    for (std::size_t k = 0; k < e->args.size(); ++k) { // a sum is at least what it is with any one argument of a Max
        const Expr m = e->args[k];
        if (e->icoef[k] < 0 || (m->kind != Kind::Max && m->kind != Kind::Min) || tries == 0) continue;
        const auto with = [&](Expr x) {
            return prove(pool, pool.isum(0, {{1, e}, {-e->icoef[k], m}, {e->icoef[k], x}}), tries - 1);
        };
        const bool yes = m->kind == Kind::Max ? std::any_of(m->args.begin(), m->args.end(), with)
                                              : std::all_of(m->args.begin(), m->args.end(), with);
        if (yes) return true;
    }
    if (e->integer < 0) return false;
    for (std::size_t k = 0; k < e->args.size(); ++k)
        if (e->icoef[k] < 0 || !prove(pool, e->args[k], tries)) return false;
    return true;
}

bool prove(ExprPool& pool, Expr e, int tries) {
    const auto all = [&](std::size_t from) {
        return std::all_of(e->args.begin() + static_cast<std::ptrdiff_t>(from), e->args.end(),
                           [&](Expr x) { return prove(pool, x, tries); });
    };
    switch (e->kind) {
    case Kind::Const: return e->integer >= 0;
    case Kind::Index:
    case Kind::Bound:
    case Kind::Dim: return true;
    case Kind::Sum: return prove_sum(pool, e, tries);
    case Kind::Product:
        for (std::size_t k = 0; k < e->args.size(); ++k)
            if (e->num[k] % 2 != 0 && !prove(pool, e->args[k], tries)) return false;
        return true;
    case Kind::FloorDiv: return all(0);
    case Kind::Mod: return prove(pool, e->args[1], tries);
    case Kind::Min: return all(0);
    case Kind::Max: return std::any_of(e->args.begin(), e->args.end(), [&](Expr x) { return prove(pool, x, tries); });
    case Kind::Select: return all(1);
    case Kind::Cast: return e->args[0]->type == Type::Bool;
    case Kind::Reduce: return e->reduce == ReduceOp::Sum && prove(pool, e->args[0], tries);
    default: return false;
    }
}

} // namespace

bool never_negative(ExprPool& pool, Expr e) {
    std::vector<Expr> map(tile::j1 + 1, nullptr);
    map[tile::i1] = pool.isum(1, {{1, pool.index(tile::i0)}, {1, pool.index(kRows)}});
    map[tile::j1] = pool.isum(1, {{1, pool.index(tile::j0)}, {1, pool.index(kColumns)}});
    return prove(pool, pool.substitute(e, map), kTries);
}

} // namespace cubridge::ir::mask
