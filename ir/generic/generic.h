// The generic kernel: CUDA printed straight from a Scalar. Slow, any variant, right: the last rung of the ladder of
// fallbacks and the reference for all that follows. Pure; any thread.
//
// The Scalar is turned into ordered *steps*. A step is one reduction, or one elementwise value worth keeping, computed
// once at its own rate: a table over the free variables that it depends on. Steps that do not depend on the query row
// are computed once per launch by prologue entries into the workspace; the others once per row, by the block that owns
// the row. The same steps can be run on the host in float64 (run()), which is how they are tested without a GPU.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/launch.h"
#include "ir/spec/scalar.h"
#include <string>

namespace cubridge::ir::generic {

struct Options {
    bool f64 = false;      ///< the reference build: `real` is double, q, k, v, o too are read and written as given
    int threads = 128;     ///< of a block
    int blocks_per_sm = 4; ///< of the persistent main grid
    int max_entries = 4;
    /// Bool over Index(0)=b, Index(1)=h, Index(2)=i, Bound-free: the row keeps no key. Null where unknown; needed for
    /// Request::EmptyRows::Zero (o = 0, lse = -inf in such a row).
    Expr row_is_empty = nullptr;
    /// Real over b, h, i: the natural LSE, where the request wants one and the text returns none. Null: none.
    Expr lse = nullptr;
};

struct Kernel {
    std::string cuda; ///< self-contained: includes nothing
    launch::Plan plan;
    int steps_per_launch = 0, steps_per_row = 0;
};

/// Any layout, f64 with any types (float64 tensors too). The Scalar's pool is only read: any thread, also for one
/// Scalar. Conditions are on what a host knows; facts that hang on values of inputs are not checked, indices are
/// clamped. Errors: "domain" where the request contradicts a fact of the Scalar, "unsupported" where a step cannot be
/// printed.
Result<Kernel> print(const Scalar& scalar, const Request& request, const Options& options = {});

} // namespace cubridge::ir::generic
