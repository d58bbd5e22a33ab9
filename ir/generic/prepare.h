// A Scalar and a Request made one: expressions of a pool of our own in which everything that the request fixes is a
// number, and every index means what the kernel addresses by. Private to ir/generic.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/generic/generic.h"
#include <memory>
#include <optional>

namespace cubridge::ir::generic {

/// Dims beyond the text's. Heads come in units: `heads_kv` is a whole number `kUnits` of units, this rank's first head
/// is the first of unit `kFirstUnit`; q, k, v and o have `Heads` heads a unit. So that head_begin / group and its kin
/// are plain multiples, and local and global heads differ by an integer that the normal form cancels.
enum : int { kUnits = 12, kFirstUnit = 13 };
struct Heads {
    std::int64_t q = 1, k = 1, v = 1, out = 1;
};

/// In the expressions here Index(0) is the request, Index(1) the *local* output head, Index(2) the kernel's row,
/// Index(3) the column. The text's h and i are sums of those (h = Index(1) + out * kFirstUnit; rows Tail: i = Index(2)
/// + Sk - Sq, and the text's Sq is Sk). Loads of q, k, v address local heads and kernel rows; loads of operands the
/// text's. Dims: B, Sq (rows of the request), Sk, kUnits, kFirstUnit and sizes of operands that no fact ties to these.
struct Prepared {
    std::shared_ptr<ExprPool> pool;
    Request request;
    Options options;
    std::vector<Input> inputs;
    std::vector<int> slot; ///< of each input in the argument block; -1: none
    Heads heads;
    Expr out = nullptr;
    Expr lse = nullptr;   ///< natural; null: not written
    Expr empty = nullptr; ///< null: rows are as written
    launch::Plan plan;    ///< operands and conditions
};

/// Failure: "domain", "unsupported", "limit".
Prepared prepare(const Scalar& scalar, const Request& request, const Options& options);

/// An Int expression over Dims alone as launch codes. `low` and `high` bound it over all requests of a launch; nothing
/// where no bound is known. A launch knows the largest Sq and Sk only.
struct Range {
    std::optional<launch::Code> low, high;
};
Range range(const Prepared& p, Expr e);
/// The value where each Sq is max_q and each Sk max_kv.
std::optional<launch::Code> code(const Prepared& p, Expr e);

} // namespace cubridge::ir::generic
