// Which keys a mask keeps, over a whole tile at once. Three-valued and always sound: "none" and "all" are promises,
// "some" is not. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include "ir/spec/variant.h"
#include <map>
#include <optional>
#include <vector>

namespace cubridge::ir::mask {

enum class Class : std::uint8_t { None, Some, All };

/// Index variables of the expressions made here, beside axis::b and axis::h: the tile holds i0 <= i < i1, j0 <= j < j1,
/// with i0 < i1 and j0 < j1. `tile` numbers entries of tables.
namespace tile {
enum : int { i0 = 8, i1 = 9, j0 = 10, j1 = 11 };
}

/// The smallest and largest value that a Load along i or along j takes in a tile are not known from the expression:
/// they are entries of per-tile tables, which a map kernel fills when the data changes. Table t has number kTable + 2 t
/// (least) and kTable + 2 t + 1 (greatest), indexed [b, h where `value` depends on them, tile].
enum : int { kTable = 2000 };
struct Table {
    Expr value = nullptr; ///< Int over b, h and one of i, j: what is tabulated
    int axis = 0;         ///< axis::i or axis::j
};

/// Only ever wider than the truth: a mask that no rule handles has `any` true, `every` false and no ranges.
struct Analysis {
    /// Bool over b, h, i0, i1, j0, j1 and table entries (Loads of kTable + ..., whose last index is the tile's number:
    /// j0 // BN and i0 // BM are written as Index(tile::j0), Index(tile::i0); transfer divides).
    Expr any = nullptr;   ///< false: no pair of the tile is kept
    Expr every = nullptr; ///< true: all pairs of the tile are kept
    std::vector<Table> tables;
    /// Closed form: key ranges for query rows i0 <= i < i1, Int over b, h, i0, i1, not clamped to [0, keys). Keys
    /// outside every `some` range are kept by no row; keys inside an `all` range are kept by every row. A range whose
    /// end is not beyond its begin is empty, wherever it lies. Ascending and disjoint (those that are not empty); an
    /// `all` lies inside its `some`, as far as keys >= 0 go. Empty list: no closed form.
    struct Range {
        Expr begin = nullptr, end = nullptr;         ///< some row may keep these
        Expr all_begin = nullptr, all_end = nullptr; ///< every row keeps these; null: nothing known
    };
    std::vector<Range> ranges;
};

/// `keep` is Bool over b, h, i, j (axis::...). 0 <= i < Sq, 0 <= j < `keys` is assumed of the tile; `keys` is
/// Part::keys, null: Sk. New nodes go into the pool of `keep`.
Analysis analyse(ExprPool& pool, Expr keep, Expr keys = nullptr);

/// The class of one tile by interval arithmetic, with sizes and loads given as numbers; for tests and for the cost
/// model. `i` and `j` are the first and the last row and key of the tile. BoundsOf is asked for Loads, Args, Dims,
/// Tables and Reduces of type Bool (0, 1) and Int, and answers with bounds over the tile, or nothing if it knows none.
struct Bounds {
    std::int64_t low, high;
};
using BoundsOf = std::function<std::optional<Bounds>(Expr leaf)>;
Class classify(Expr keep, std::int64_t b, std::int64_t h, Bounds i, Bounds j, const BoundsOf& leaf);

/// The value of a score's bias if it is constant on a tile, for classes of tiles: Real over b, h, i0, i1, j0, j1 and
/// table entries, and the condition under which it holds; nothing where no such rule applies. Of a function of the
/// distance j - i, what it is far before and far after the rows stands first, where `e <= 0` for each of some e of the
/// same ends of the tile (one value on both sides: or that for others). Tables are added to `tables`, which is usually
/// that of the mask's Analysis.
struct ConstantBias {
    Expr condition, value;
};
std::vector<ConstantBias> constant_bias(ExprPool& pool, Expr bias, std::vector<Table>& tables);

} // namespace cubridge::ir::mask
