// What an expression costs to compute again, in issue slots; shared nodes count at each use, as a reader would compute
// them. Private to ir/generic. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <algorithm>
#include <unordered_map>

namespace cubridge::ir::generic {

class Costs {
public:
    int operator()(Expr e) {
        if (const auto it = known_.find(e); it != known_.end()) return it->second;
        int c = own(e);
        for (const Expr a : e->args) c = std::min(c + (*this)(a), 1000000);
        known_.emplace(e, c);
        return c;
    }

private:
    static int own(Expr e) {
        switch (e->kind) {
        case Kind::Const:
        case Kind::Index:
        case Kind::Bound:
        case Kind::Dim:
        case Kind::Arg: return 0;
        case Kind::FloorDiv:
        case Kind::Mod: return 25;
        case Kind::Fn: return info(e->op).cost;
        case Kind::F32Fn: return 2 * info(e->op).cost;
        case Kind::Reduce: return 1000;
        case Kind::Product: {
            int c = 0;
            for (std::size_t k = 0; k < e->args.size(); ++k) c += e->den[k] != 1 ? 12 : e->num[k] < 0 ? 8 : 1;
            return c;
        }
        default: return 1;
        }
    }
    std::unordered_map<Expr, int> known_;
};

} // namespace cubridge::ir::generic
