// In what a specification's tensors are computed: on concrete arrays (the reference evaluator) or on expressions (the
// tracer that makes a Scalar). The interpreter follows the text and knows neither.
//
// Sizes and positions are Values: an integer, or an Expr in the symbolic domain. Failures carry no span; the
// interpreter adds the place. Not thread-safe; one domain serves one run of one text. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "ir/spec/value.h"
#include <optional>
#include <span>

namespace cubridge::ir::spec {

class Domain {
public:
    virtual ~Domain() = default;
    /// What counts the steps of the run beside the interpreter's own bound; null: nothing does.
    virtual Meter* meter() { return nullptr; }

    // Python numbers of which at least one is an Expr.
    virtual Value number(Op op, std::span<const Value> x) = 0;
    virtual Value to_int(const Value& symbol) = 0;
    virtual Value to_float(const Value& symbol) = 0;
    /// The truth of a symbolic condition: decided, or taken as this run's assumption.
    virtual bool truth(const Value& symbol) = 0;
    /// The number that a symbol must be for Python to go on (a range, a list index). Never returns for one that hangs
    /// on a launch size.
    virtual std::int64_t require_int(const Value& symbol, const char* what_for) = 0;
    virtual double require_float(const Value& symbol, const char* what_for) = 0;

    // Making.
    virtual TensorRef full(const Values& sizes, const Value& value, DType dtype) = 0;
    virtual TensorRef wrap(const Value& number) = 0; ///< a Python number as a weak 0-d tensor
    virtual TensorRef arange(const Value& start, const Value& stop, const Value& step, DType dtype) = 0;
    virtual TensorRef from_numbers(const std::vector<std::int64_t>& shape, const Values& numbers, DType dtype) = 0;

    // Looking.
    virtual Values shape(const TensorRef& t) = 0;
    std::size_t rank(const TensorRef& t) { return shape(t).size(); }
    virtual Value item(const TensorRef& t, const char* what_for) = 0;

    // Computing; the semantics are those of ir/tensor/tensor.h.
    virtual TensorRef cast(const TensorRef& t, DType dtype) = 0;
    virtual TensorRef apply(Op op, const std::vector<TensorRef>& x) = 0;
    virtual TensorRef reshape(const TensorRef& t, const Values& sizes) = 0;
    virtual TensorRef permute(const TensorRef& t, const std::vector<int>& order) = 0;
    virtual TensorRef expand(const TensorRef& t, const Values& sizes) = 0;
    virtual TensorRef slice(const TensorRef& t, int dim, const Value& start, const Value& stop, const Value& step) = 0;
    virtual TensorRef select(const TensorRef& t, int dim, const Value& at) = 0;
    virtual TensorRef flip(const TensorRef& t, int dim) = 0;
    virtual TensorRef concat(const std::vector<TensorRef>& x, int dim) = 0;
    virtual TensorRef repeat_interleave(const TensorRef& t, const Value& times, int dim) = 0;
    virtual TensorRef gather(const TensorRef& t, const std::vector<TensorRef>& at) = 0; ///< null: a full slice
    virtual TensorRef take_along(const TensorRef& t, int dim, const TensorRef& index) = 0;
    virtual TensorRef scatter(const TensorRef& t, int dim, const TensorRef& index, const TensorRef& source) = 0;
    struct Region { ///< of one axis: a position, a tensor of positions, or start and count of a range
        TensorRef index;
        Value start, count, step = 1;
        bool single = false; ///< a position: the axis is not in the value's shape
    };
    virtual TensorRef assign(const TensorRef& t, const std::vector<Region>& where, const TensorRef& value) = 0;
    virtual TensorRef reduce(ReduceOp op, const TensorRef& t, const std::vector<int>& dims, bool keepdim) = 0;
    virtual TensorRef cumsum(const TensorRef& t, int dim) = 0;
    virtual TensorRef argsort(const TensorRef& t, int dim, bool descending) = 0;
    virtual TensorRef argmax(const TensorRef& t, int dim, bool keepdim) = 0;
    virtual TensorRef contract(const std::vector<TensorRef>& x, const std::vector<std::vector<int>>& labels,
                               const std::vector<int>& out) = 0;
};

} // namespace cubridge::ir::spec
