// What an expression can be anywhere in a tile, as expressions over the tile. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/mask/mask.h"
#include <unordered_map>

namespace cubridge::ir::mask {

/// Of an Int over the tile: low <= value <= high; null: not known.
struct Ends {
    Expr low = nullptr, high = nullptr;
};
/// Of a Bool over the tile: it is nowhere true unless `any`, and everywhere true if `every`.
struct Truth {
    Expr any = nullptr, every = nullptr;
};

/// Does `e` depend on i, on j? on_tile: on either.
bool has(Expr e, int axis);
bool on_tile(Expr e);

/// Ends and Truths of expressions over b, h, i, j. Borrows the pool and the list of tables, to which it adds. One
/// thread.
class Extent {
public:
    Extent(ExprPool& pool, std::vector<Table>& tables) : p_(pool), tables_(tables) {}
    Ends ends(Expr e);
    Truth truth(Expr e);
    /// Least and greatest entry of the table of `value`, Int over b, h and one of i, j.
    Ends entry(Expr value);
    /// Is part of `e` data, or something that only a table can bound?
    bool opaque(Expr e);

private:
    Ends make_ends(Expr e);
    Ends sum(Expr e);
    Ends product(Expr e);
    Ends power(Expr base, std::int64_t n);
    Ends times(const Ends& a, const Ends& b);
    Ends linear(Expr coefficient, int axis);
    Ends hull(const Ends& a, const Ends& b);
    Truth make_truth(Expr e);
    Truth equal(Expr e);
    Truth congruent(Expr mod, Expr value);
    Expr whole(Expr real);
    Expr one_of(Kind kind, Expr a, Expr b);

    ExprPool& p_;
    std::vector<Table>& tables_;
    std::unordered_map<Expr, Ends> ends_;
    std::unordered_map<Expr, Truth> truths_;
    std::unordered_map<Expr, bool> opaque_;
};

} // namespace cubridge::ir::mask
