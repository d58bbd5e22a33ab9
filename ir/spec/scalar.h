// Scalar: the specification as one expression per output, every tensor operation turned into index arithmetic. What the
// generic kernel is printed from and what a Variant is matched on. Certified against the tensor evaluator at each
// parse. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include "ir/expr/expr.h"
#include <memory>

namespace cubridge::ir {

/// A condition on sizes and settings under which the text means what the Scalar says. Beside the Subject, never in it.
struct Fact {
    enum class Kind {
        Equal,   ///< left == right, as expressions over Dims
        AtLeast, ///< left >= right
        Divides, ///< left % right == 0; right is a constant or a Dim
    };
    Kind kind;
    Expr left, right;
    Span span;        ///< what in the text demands it
    std::string text; ///< "Sq == Sk", for messages
};

struct ScalarOutput {
    std::vector<Expr> shape; ///< over Dims; [B, heads, Sq, Dv] for the attention output, [B, heads, Sq] for an LSE
    Expr body;               ///< Real, over Index(0..rank-1)
    DType dtype;             ///< as the text leaves it
};

struct Scalar {
    std::shared_ptr<ExprPool> pool;
    std::vector<Input> inputs;             ///< all, Static and Absent ones included, so that numbers are stable
    std::vector<std::vector<Expr>> shapes; ///< of each input, over Dims
    std::vector<ScalarOutput> out;         ///< one, or two: the second is the LSE
    std::vector<Fact> facts;
    /// Other ways through the text, where its conditions on sizes take them: under `when` the outputs are these. Empty
    /// after certification: a way that equals the general one is dropped, the others are joined into `out`.
    struct Branch {
        Expr when;
        std::vector<ScalarOutput> out;
    };
    std::vector<Branch> branches;
    int heads = 0; ///< the text computes with the number of query heads, and this is it; 0: any
};

} // namespace cubridge::ir
