// Small n-d arrays with PyTorch's broadcasting and promotion, in float64: what the evaluator of specifications computes
// with. Integers and booleans are exact (|value| <= 2^53, else a Failure of kind "limit").
//
// A float tensor of dtype float32 that hangs on nothing but positions, integers, constants and operands (not on q, k,
// v) also carries `pin`: the same values computed in float32, operation by operation, as PyTorch would. Comparisons,
// floor and casts to integers read the pin where there is one, so that buckets fall where PyTorch puts them
// (variant.md, N1).
//
// Values are immutable and shared; any thread may read them. Errors are Failures ("shape", "type", "index", "limit"),
// worded as one sentence with the shapes in it, without a span: the interpreter adds the place.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include "ir/expr/expr.h"
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::ir::tensor {

using Shape = std::vector<std::int64_t>;

struct Tensor {
    DType dtype = DType::F64;
    Shape shape;
    std::shared_ptr<const std::vector<double>> data; ///< row major, contiguous
    std::shared_ptr<const std::vector<float>> pin;   ///< or null
    bool scalar = false; ///< a Python number wrapped as a 0-d tensor: promotes weakly, as PyTorch's wrapped numbers do

    std::int64_t rank() const { return static_cast<std::int64_t>(shape.size()); }
    std::int64_t size() const;
};

constexpr std::int64_t kMaxElements = std::int64_t{1} << 28; ///< of one tensor; more is a Failure of kind "limit"

// Making.
Tensor full(Shape shape, double value, DType dtype, bool pinned); ///< pinned: a float32 value known without q, k, v
Tensor number(double value, DType dtype);                         ///< a wrapped Python number; pinned if float
Tensor from_values(Shape shape, std::vector<double> values, DType dtype, bool pinned);
Tensor arange(double start, double step, std::int64_t count, DType dtype);

// Types. Casting a float to an integer truncates the pin where there is one; to bool tests != 0. A cast to a float type
// of at least float32 keeps the pin; float64 drops it (values are then exact as they are); float16 and bfloat16 drop
// it. Casts among float types never round `data`.
Tensor cast(const Tensor& t, DType dtype);

// Elementwise with broadcasting. Operands are promoted as PyTorch does (0-d and Python numbers are weak within a
// category); Div and the real_in operators turn integers into float32 (the default dtype). Bool arithmetic is refused
// where PyTorch refuses it (Sub, Neg of bool; Not of float; And/Or/Xor of float).
Tensor apply(Op op, const std::vector<Tensor>& x);

// Shapes. Dims may be negative as in PyTorch.
Tensor reshape(const Tensor& t, const Shape& shape); ///< at most one -1
Tensor permute(const Tensor& t, const std::vector<std::int64_t>& order);
Tensor expand(const Tensor& t, const Shape& shape); ///< -1 keeps a size
Tensor slice(const Tensor& t, std::int64_t dim, std::int64_t start, std::int64_t stop, std::int64_t step); ///< clips
Tensor select(const Tensor& t, std::int64_t dim, std::int64_t at); ///< removes the dim; out of range is an error
Tensor flip(const Tensor& t, std::int64_t dim);
Tensor concat(const std::vector<Tensor>& x, std::int64_t dim);
Tensor repeat_interleave(const Tensor& t, std::int64_t times, std::int64_t dim);

// Indexing by tensors: at[d] is an integer tensor for axis d, or nothing for a full slice. The index tensors broadcast
// together; the result's axes stand as PyTorch puts them (in place if the indexed axes are adjacent, else first).
// Negative indices wrap, out of range is a Failure. A boolean mask index is refused (its shape hangs on data).
Tensor gather(const Tensor& t, const std::vector<std::optional<Tensor>>& at);
// torch.gather(t, dim, index).
Tensor take_along(const Tensor& t, std::int64_t dim, const Tensor& index);
// t.scatter(dim, index, source): a copy of t.
Tensor scatter(const Tensor& t, std::int64_t dim, const Tensor& index, const Tensor& source);
// A copy of t with the selected region overwritten by `value` (broadcast): for `x[...] = value`.
struct Region {                                  // one per axis of t
    std::optional<Tensor> index;                 // integer tensor (0-d: a single position), or ...
    std::int64_t start = 0, step = 1, count = 0; // ... a range
};
Tensor assign(const Tensor& t, const std::vector<Region>& where, const Tensor& value);

// Reductions. Empty `dims` means all. Max and Min of an empty axis is a Failure as in PyTorch; NaN wins in Max and Min.
// Sum and Prod of integers and booleans are int64; Any and All give bool.
Tensor reduce(ReduceOp op, const Tensor& t, std::vector<std::int64_t> dims, bool keepdim);
Tensor cumsum(const Tensor& t, std::int64_t dim);
Tensor argsort(const Tensor& t, std::int64_t dim, bool descending); ///< stable; NaN counts as largest, as in PyTorch
Tensor argmax(const Tensor& t, std::int64_t dim, bool keepdim);     ///< the first of equals

// Sum of products: einsum without its text. Each operand's axes carry labels (small integers); labels that are not in
// `out` are summed over. A repeated label within an operand takes the diagonal. Sizes of 1 broadcast.
// The inner loops must be efficient: 128x128x128 matmuls of a few heads are evaluated in tests on 2 cores.
Tensor contract(const std::vector<Tensor>& x, const std::vector<std::vector<int>>& labels, const std::vector<int>& out);

std::string describe(const Tensor& t); ///< "float32 [2, 3]"

} // namespace cubridge::ir::tensor
