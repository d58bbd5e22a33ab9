// The one expression language: what a value of a specification is at one position. Hash-consed, typed, immutable.
//
// Integers are kept in polynomial normal form by the constructors (sum of coefficient x monomial over atoms), reals are
// flattened and constant-folded but never cancelled or distributed (inf and NaN!). F32 is float32 arithmetic exactly as
// written, operation by operation: what feeds a comparison or a cast to an integer is computed in it.
//
// Variables. `Index(k)` is free: axis k of the tensor that the expression describes. A Reduce binds `Bound(n)` in its
// body, n = 1 + the largest bound number inside the body, so that alpha-equivalent reductions are one node, and so that
// substituting expressions without free Bounds never captures.
//
// Ownership: nodes live in their ExprPool and die with it; handles are plain pointers. A pool is used by one thread at
// a time; nodes are immutable and may be read by all. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/meter.h"
#include "ir/expr/ops.h"
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

namespace cubridge::ir {

enum class Type : std::uint8_t { Bool, Int, F32, Real };

enum class Kind : std::uint8_t {
    Const, ///< integer (Bool, Int) or real (F32, Real)
    Index, ///< number; Int
    Bound, ///< number; Int
    Dim,   ///< number: a Dims value; Int, >= 0
    Arg,   ///< number: input of rank 0; Bool, Int or Real
    Load,  ///< number: input; args: one Int per axis. Out of range is clamped by every reader, so that no reader faults
    Table, ///< number: constant table of the pool; args: one Int per axis
    Sum,   ///< Int: integer + sum of icoef[k] * args[k]. Real: real + sum of rcoef[k] * args[k]
    Product,  ///< args[k] ^ (num[k] / den[k]); Int: den is 1, num >= 1. No constant factor: that is a Sum's coefficient
    FloorDiv, ///< Int, Python's sign rule
    Mod,      ///< Int, Python's sign rule
    Min,
    Max,   ///< Int or Real, two or more args; Real: NaN wins
    Fn,    ///< op; Real args and type, one or two args (Pow, Atan2)
    F32Fn, ///< op; F32 args and type: any arithmetic Op, never reassociated
    Cmp,   ///< op: Int args: Le or Eq against 0 (args[0] only). Real, F32 args: Lt, Le, Eq of args[0], args[1]
    And,
    Or,     ///< Bool, two or more args, no duplicates
    Not,    ///< Bool
    Select, ///< condition, value, other
    Cast,   ///< to `type`: Bool->Int, Int->F32, Int->Real, F32->Real, Real->F32 (rounds), F32->Int and Real->Int
            ///< (truncate)
    Reduce, ///< reduce; args: body, extent. `number` is the Bound number
};

enum class ReduceOp : std::uint8_t { Sum, Max, Min, Any, All, Prod };

struct ExprNode;
using Expr = const ExprNode*;

struct ExprNode {
    Kind kind;
    Type type;
    Op op = Op::Count;
    ReduceOp reduce = ReduceOp::Sum;
    int number = 0;
    std::int64_t integer = 0;
    double real = 0;
    std::vector<Expr> args{};
    std::vector<std::int64_t> icoef{}, num{}, den{};
    std::vector<double> rcoef{};
    // derived
    std::uint64_t free = 0; ///< the rate: bits 0..15 Index, bits 16..63 Bound
    int height = 0;         ///< largest Bound number bound inside, 0 if none
    int depth = 0;          ///< of the expression; bounded, so that recursion over it is safe
    int id = 0;             ///< position in the pool: children have smaller ids
    std::size_t hash = 0;
};

constexpr int kMaxIndex = 16, kMaxBound = 47, kMaxDepth = 800;
constexpr std::uint64_t index_bit(int k) {
    return std::uint64_t{1} << k;
}
constexpr std::uint64_t bound_bit(int n) {
    return std::uint64_t{1} << (kMaxIndex + n);
} ///< n from 0
constexpr std::uint64_t kAllBound = ~std::uint64_t{0} << kMaxIndex;

/// Numbers of Kind::Dim. The sizes of input x beyond q, k, v are dim_of(x, axis).
namespace dims {
enum : int { B, Hq, Hk, Sq, Sk, D, Dv, Hv, kB, kD, vB, vS, FirstInput = 16 };
constexpr int of(int input, int axis) {
    return FirstInput + input * 8 + axis;
}
constexpr bool is_input(int number) {
    return number >= FirstInput;
}
constexpr int input(int number) {
    return (number - FirstInput) / 8;
}
constexpr int axis(int number) {
    return (number - FirstInput) % 8;
}
std::string name(int number); ///< "Sq"; "x3.0" for inputs
} // namespace dims

struct ConstTable {
    std::vector<std::int64_t> shape;
    std::vector<double> values; ///< row major
    Type type = Type::Real;
};

class ExprPool {
public:
    ExprPool();
    ExprPool(const ExprPool&) = delete;
    ExprPool& operator=(const ExprPool&) = delete;

    // Leaves.
    Expr boolean(bool v);
    Expr integer(std::int64_t v);
    Expr real(double v);
    Expr f32(float v);
    Expr index(int k);
    Expr bound(int n);
    Expr dim(int number);
    Expr arg(int input, Type type);
    Expr load(int input, Type type, std::vector<Expr> at);
    Expr table(int table, std::vector<Expr> at);
    int add_table(ConstTable t); ///< equal tables share a number
    const ConstTable& table(int number) const { return tables_[static_cast<std::size_t>(number)]; }
    std::size_t table_count() const { return tables_.size(); }

    /// An elementwise operator on operands of equal type (Bool counts as Int for arithmetic). Pow and Div of Ints are
    /// refused here (the caller converts); everything that the table allows for the type is accepted.
    Expr apply(Op op, std::span<const Expr> x);
    Expr apply(Op op, Expr a) { return apply(op, std::span<const Expr>(&a, 1)); }
    Expr apply(Op op, Expr a, Expr b);
    Expr select(Expr c, Expr a, Expr b);
    Expr cast(Type to, Expr x);

    Expr add(Expr a, Expr b) { return apply(Op::Add, a, b); }
    Expr sub(Expr a, Expr b) { return apply(Op::Sub, a, b); }
    Expr mul(Expr a, Expr b) { return apply(Op::Mul, a, b); }
    Expr logical_and(Expr a, Expr b) { return apply(Op::And, a, b); }
    Expr logical_or(Expr a, Expr b) { return apply(Op::Or, a, b); }
    Expr logical_not(Expr a) { return apply(Op::Not, a); }
    Expr logical_and(std::vector<Expr> x);
    Expr logical_or(std::vector<Expr> x);

    // n-ary forms, for passes that take nodes apart. Same normalisation as apply().
    Expr isum(std::int64_t constant, std::vector<std::pair<std::int64_t, Expr>> terms);
    Expr rsum(double constant, std::vector<std::pair<double, Expr>> terms);
    struct Power {
        Expr base;
        std::int64_t num, den;
    };
    /// A constant base is folded into a coefficient. `distribute`: over Int sums; int_mul asks without, of what is too
    /// long.
    Expr product(Type type, std::vector<Power> factors, bool distribute = true);
    Expr extremum(Kind min_or_max, std::vector<Expr> x);

    /// Reduces `body` over Index(axis), 0 <= value < extent. The result has no Index(axis); others keep their numbers.
    Expr reduce(ReduceOp op, Expr body, int axis, Expr extent);
    /// The body of a Reduce with its variable replaced by `value` (an expression, often a fresh Index).
    Expr open(Expr reduce, Expr value);

    /// Replaces Index(k) by map[k] for k < map.size() where map[k] is not null. The replacements have no free Bound, or
    /// the same ones as at the place of use.
    Expr substitute(Expr e, std::span<const Expr> map);
    /// Rebuilds bottom-up: f sees a node whose children are rebuilt and returns its replacement (or the node).
    Expr rewrite(Expr e, const std::function<Expr(Expr)>& f);
    /// The same node with other children, normalised again.
    Expr with_args(Expr e, std::vector<Expr> args);

    std::size_t size() const { return nodes_.size(); }
    /// More nodes than this is a Failure of kind "limit" (hostile text).
    void set_limit(std::size_t nodes) { limit_ = nodes; }
    /// Counts the nodes asked for, with their children, and the nodes that rewriting looks at.
    Meter& meter() { return meter_; }

    /// Hash-conses a node as it is, without normalising. For the constructors of ir/expr only.
    Expr intern(ExprNode node);

private:
    Expr logic(Kind kind, std::vector<Expr> x);
    std::deque<ExprNode> nodes_;
    std::unordered_multimap<std::size_t, Expr> byhash_;
    std::vector<ConstTable> tables_;
    std::size_t limit_ = 400000;
    Meter meter_;
};

/// Scalars of PyTorch's default behaviour that the constructors need: Python's // and % on integers; a divisor of 0
/// gives 0.
std::int64_t floor_div(std::int64_t a, std::int64_t b);
std::int64_t floor_mod(std::int64_t a, std::int64_t b);

bool is_const(Expr e);
bool is_int(Expr e, std::int64_t value); ///< the Int constant `value`
bool is_real(Expr e, double value);      ///< the Real constant `value`
bool is_true(Expr e);
bool is_false(Expr e);

/// For people and tests: infix, names for Dims, x<n> for inputs, i<k> and r<n> for variables. Not a format.
std::string debug_text(Expr e);

} // namespace cubridge::ir
