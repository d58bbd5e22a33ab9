// Expressions of a Variant as expressions of CuIR, with as few operations an element as their structure allows: what is
// constant along a row, a column or the whole tile becomes a statement of its own. Private to ir/transfer.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include "ir/spec/variant.h"
#include "ir/transfer/make.h"
#include "ir/transfer/transfer.h"
#include <functional>
#include <map>
#include <set>
#include <unordered_map>

namespace cubridge::ir::transfer {

/// What a value depends on, and so how often it is computed. Row and Column together are a Tile.
enum class Level { Kernel, Scalar, Row, Column, Tile };

/// Index variables beside those of axis:: and mask::tile.
namespace place {
enum : int { distance = 12, first = 13 /* the first row of an agent */, entry = 14 };
}
/// Input numbers of leaves that rules make: LOG2E is Arg(kLog2e); table n of the workspace is Load(kWorkspace + n).
/// Load(kReal, {n}) is n as a real, a cast that no sum merges with others. Load(kTanhSmall, {x}) is tanh of an x within
/// 0.5, Load(kLogisticSmall, {x}) is 1 / (2^x + 1) of an x within 31, Load(kFlat) what a bias is all over a tile.
enum : int { kLog2e = 1300, kReal = 1301, kTanhSmall = 1302, kLogisticSmall = 1303, kFlat = 1304, kWorkspace = 1400 };

/// What the expressions of one kernel name: parameters and constants in its head.
struct Uses {
    std::set<int> operands;                                      ///< canonical numbers
    std::vector<std::pair<std::int64_t, std::string>> constants; ///< value, name
    std::set<std::string> tensors;                               ///< Q, K, V read by a map

    NodePtr integer(std::int64_t value);
};

class Writer {
public:
    Writer(ExprPool& pool, const Variant& v, Uses& uses) : pool_(pool), v_(v), uses_(uses) {}

    std::map<int, NodePtr> index;              ///< Index variables; Bound(n) is kMaxIndex + n
    NodePtr kv;                                ///< h // (Hq // Hk), where the program has a name for it
    std::function<NodePtr(Expr)> leaf;         ///< Loads of kScore, kOutput, tables; null: not this one
    std::function<NodePtr(Expr, Level)> hoist; ///< gives the name of a statement; null: everything in place
    std::function<NodePtr(Expr)> named;        ///< what has a name already; null: nothing
    bool hoists_lower = true;                  ///< false: only what is used twice becomes a statement
    std::function<NodePtr(Expr)> reduce;       ///< null: Reduces are refused

    /// As part of an expression of that level.
    NodePtr write(Expr e, Level context = Level::Tile);
    /// Without hoisting e itself.
    NodePtr make(Expr e);
    Level level(Expr e);

private:
    struct Signed {
        NodePtr node;
        bool minus;
    };
    bool heavy(Expr e);
    NodePtr once(Expr e);
    NodePtr chain(const std::vector<Signed>& terms);
    NodePtr int_sum(Expr e);
    NodePtr real_sum(Expr e);
    NodePtr product(Expr e, double coefficient);
    NodePtr flat_product(const std::vector<ExprPool::Power>& factors, NodePtr coefficient);
    NodePtr compare_with_zero(Expr e, const char* equal, bool negated);
    NodePtr input(Expr e);
    NodePtr dim(int number);
    NodePtr arguments(const std::string& function, Expr e);

    ExprPool& pool_;
    const Variant& v_;
    Uses& uses_;
    std::unordered_map<Expr, Level> levels_;
    std::unordered_map<Expr, bool> heavy_;
};

Level join(Level a, Level b);
/// The canonical number of an input; -1: none.
int canonical(const Variant& v, int input);
/// Whether a Load of that input, or an Arg, stands anywhere in e.
bool contains(Expr e, const std::function<bool(Expr)>& what);
/// factor * e with the factor inside sums and choices.
Expr scaled(ExprPool& pool, Expr e, Expr factor);
Expr log2e(ExprPool& pool);
/// tanh, sigmoid and exp by exp2, which is what the hardware has: accurate to about 1e-7 of their range.
Expr by_exp2(ExprPool& pool, Expr e);

} // namespace cubridge::ir::transfer
