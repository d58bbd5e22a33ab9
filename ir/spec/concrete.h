// The concrete domain: the reference evaluator's arrays behind the interpreter. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/domain.h"
#include "ir/tensor/tensor.h"

namespace cubridge::ir::spec {

struct ConcreteTensor final : TensorBase {
    tensor::Tensor t;
};

class ConcreteDomain final : public Domain {
public:
    /// `budget` bounds the elements that one run may make in all; more is a Failure of kind "limit".
    /// `meter`, if any, counts elements and steps.
    explicit ConcreteDomain(std::int64_t budget = std::int64_t{1} << 26, Meter* meter = nullptr)
        : left_(budget), meter_(meter) {}

    /// From now on a float that arithmetic makes lies a unit in its last place above or below what it is, at random;
    /// whole numbers below 2^24 stay. What then gives other numbers hangs on how float64 rounds. `seed` is not 0.
    void blur(std::uint64_t seed) { noise_ = seed; }

    TensorRef make(tensor::Tensor t);
    static const tensor::Tensor& at(const TensorRef& t) { return static_cast<const ConcreteTensor&>(*t).t; }

    Meter* meter() override { return meter_; }
    Value number(Op op, std::span<const Value> x) override;
    Value to_int(const Value& v) override { return v; }
    Value to_float(const Value& v) override { return v; }
    bool truth(const Value& v) override;
    std::int64_t require_int(const Value& v, const char* what_for) override;
    double require_float(const Value& v, const char* what_for) override;
    TensorRef full(const Values& sizes, const Value& value, DType dtype) override;
    TensorRef wrap(const Value& number) override;
    TensorRef arange(const Value& start, const Value& stop, const Value& step, DType dtype) override;
    TensorRef from_numbers(const std::vector<std::int64_t>& shape, const Values& numbers, DType dtype) override;
    Values shape(const TensorRef& t) override;
    Value item(const TensorRef& t, const char* what_for) override;
    TensorRef cast(const TensorRef& t, DType dtype) override;
    TensorRef apply(Op op, const std::vector<TensorRef>& x) override;
    TensorRef reshape(const TensorRef& t, const Values& sizes) override;
    TensorRef permute(const TensorRef& t, const std::vector<int>& order) override;
    TensorRef expand(const TensorRef& t, const Values& sizes) override;
    TensorRef slice(const TensorRef& t, int dim, const Value& start, const Value& stop, const Value& step) override;
    TensorRef select(const TensorRef& t, int dim, const Value& at) override;
    TensorRef flip(const TensorRef& t, int dim) override;
    TensorRef concat(const std::vector<TensorRef>& x, int dim) override;
    TensorRef repeat_interleave(const TensorRef& t, const Value& times, int dim) override;
    TensorRef gather(const TensorRef& t, const std::vector<TensorRef>& at) override;
    TensorRef take_along(const TensorRef& t, int dim, const TensorRef& index) override;
    TensorRef scatter(const TensorRef& t, int dim, const TensorRef& index, const TensorRef& source) override;
    TensorRef assign(const TensorRef& t, const std::vector<Region>& where, const TensorRef& value) override;
    TensorRef reduce(ReduceOp op, const TensorRef& t, const std::vector<int>& dims, bool keepdim) override;
    TensorRef cumsum(const TensorRef& t, int dim) override;
    TensorRef argsort(const TensorRef& t, int dim, bool descending) override;
    TensorRef argmax(const TensorRef& t, int dim, bool keepdim) override;
    TensorRef contract(const std::vector<TensorRef>& x, const std::vector<std::vector<int>>& labels,
                       const std::vector<int>& out) override;

private:
    tensor::Shape sizes_of(const Values& sizes);
    void charge(double elements);         ///< before anything of that size is made
    TensorRef computed(tensor::Tensor t); ///< make() of what arithmetic made
    std::uint64_t noise_ = 0;             ///< state of the blur; 0: none
    std::int64_t left_;
    Meter* meter_;
};

} // namespace cubridge::ir::spec
