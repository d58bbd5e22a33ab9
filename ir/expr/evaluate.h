// Values of expressions in float64: every node becomes an array over the variables that it depends on, so that an
// expression costs what its parts cost, not what their nesting would. The reader that certification and tests use.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/expr.h"
#include <map>
#include <memory>

namespace cubridge::ir {

/// What the leaves are. Borrowed for the life of an Evaluator.
struct Environment {
    struct Data {
        std::vector<std::int64_t> shape;
        std::shared_ptr<const std::vector<double>> values; ///< row major; of rank 0: one value
    };
    std::map<int, std::int64_t> dims; ///< by Kind::Dim number
    std::map<int, Data> inputs;       ///< by input number; Args and Loads read them
};

class Evaluator {
public:
    /// `meter`, if any, counts elements; with one, all arrays together have no more than 2^24 elements.
    Evaluator(const ExprPool& pool, const Environment& environment, Meter* meter = nullptr)
        : pool_(pool), env_(environment), meter_(meter) {}

    /// Values of `e` over Index(0) < extents[0], ..., row major; integers and booleans as doubles. Throws Failure:
    /// "limit" where an intermediate array would have more than 2^25 elements, "internal" for an unknown leaf.
    std::vector<double> over(Expr e, const std::vector<std::int64_t>& extents);
    /// The value of an expression without free variables.
    double value(Expr e);

private:
    struct Array {
        std::vector<int> variables; // bits of ExprNode::free, ascending
        std::vector<std::int64_t> extents;
        std::vector<double> data;
    };
    const Array& array(Expr e);
    Array make(Expr e);
    Array blank(std::uint64_t free);
    template <class F> void fill(Array& out, const std::vector<const Array*>& from, F f) const;
    std::int64_t extent_of(int variable) const { return extents_[static_cast<std::size_t>(variable)]; }

    const ExprPool& pool_;
    const Environment& env_;
    Meter* meter_;
    double elements_ = 0;
    std::vector<std::int64_t> extents_ = std::vector<std::int64_t>(64, 0);
    std::map<std::pair<Expr, std::vector<std::int64_t>>, Array> done_;
};

} // namespace cubridge::ir
