// The symbolic domain: a tensor is its shape over Dims and the expression of one element. Following a text in it gives
// the Scalar.
//
// What the text leaves open is assumed on the way: that two sizes are equal, that a parameter is static, which way an
// `if` on a launch size goes. An assumption is noted in Assumptions and the run starts over (Restart), so that every
// run is straight-line code over settled facts.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/domain.h"
#include "ir/spec/scalar.h"
#include <map>
#include <set>

namespace cubridge::ir::spec {

/// Thrown to start the run over under one more assumption.
struct Restart {};

/// What runs so far have settled. Expressions live in the pool of the domain.
struct Assumptions {
    std::map<int, Expr> defined; ///< Dim -> what it is
    std::vector<Fact> facts;
    std::set<int> statics;                       ///< inputs that are folded
    int heads = 0;                               ///< the number of query heads, once the text computes with it
    int heads_available = 0;                     ///< what it is if the text asks
    std::vector<std::pair<Expr, bool>> branches; ///< conditions on launch sizes and the way this run takes
};

enum Use : unsigned { kUsedAsInt = 1, kUsedAsFloat = 2, kUsedAsBool = 4, kUsedAsIndex = 8 };

struct SymbolicTensor final : TensorBase {
    std::vector<Expr> shape;
    Expr body = nullptr;
    Expr pin = nullptr;       ///< the F32 value, see ir/tensor/tensor.h
    std::uint64_t inputs = 0; ///< which captured tensors it hangs on
    bool guessed = false;     ///< of a captured tensor whose rank is a guess, moved about or cast
    int raw = -1;             ///< a captured tensor whose type is not known yet, moved about but not computed with
    Expr sorted = nullptr;    ///< argsort: what was sorted, along which axis, how
    int sorted_axis = 0;
    bool descending = false;
};

class SymbolicDomain final : public Domain {
public:
    SymbolicDomain(ExprPool& pool, Assumptions& assumptions) : pool_(pool), know_(assumptions) {}

    /// Input `number` as a tensor over its Dims; `from_qkv` inputs carry no pin. `raw`: its type is a guess.
    TensorRef input(int number, DType dtype, const std::vector<int>& dims, bool from_qkv, bool raw);
    /// A scalar input as a Python number, or (as_tensor) as a 0-d tensor.
    Value scalar(int number, Type type);

    const SymbolicTensor& at(const TensorRef& t) const { return static_cast<const SymbolicTensor&>(*t); }
    Expr resolve(Expr size);                       ///< with every settled Dim replaced
    std::uint64_t blame() const { return blame_; } ///< captured tensors that the last operation touched
    const std::map<int, unsigned>& uses() const { return uses_; }
    /// Demands a == b: proves it, or assumes it where that is a statement on sizes a request can satisfy.
    void unify(Expr a, Expr b, const char* what);
    void require(Fact::Kind kind, Expr left, Expr right);
    bool nonnegative(Expr e, int depth = 0); ///< proved from sizes and positions (int Args by a fact)

    Meter* meter() override { return &pool_.meter(); }
    Value number(Op op, std::span<const Value> x) override;
    Value to_int(const Value& symbol) override;
    Value to_float(const Value& symbol) override;
    bool truth(const Value& symbol) override;
    std::int64_t require_int(const Value& symbol, const char* what_for) override;
    double require_float(const Value& symbol, const char* what_for) override;
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

    Expr to_expr(const Value& number); ///< a Python number
    Value to_value(Expr e);            ///< constants come back as Python numbers
    Expr convert(Expr body, DType from, DType to);

private:
    Expr compute(Op op, std::span<const Expr> x); ///< the text's own arithmetic: of integers that are exact
    using Ptr = std::shared_ptr<SymbolicTensor>;
    Ptr like(const SymbolicTensor& t); ///< a copy that still is `t` to type inference
    Ptr fresh(DType dtype, std::vector<Expr> shape, Expr body, std::uint64_t inputs);
    Ptr moved(const SymbolicTensor& t, std::vector<Expr> shape, const std::vector<Expr>& map);
    Expr size_of(const Value& v);
    /// Sizes of a broadcast of shapes; 1 gives way.
    std::vector<Expr> broadcast(const std::vector<const SymbolicTensor*>& x);
    /// t's body with its axes set against the last ones of a result of rank `rank`.
    Expr aligned(const SymbolicTensor& t, Expr body, const std::vector<Expr>& shape);
    void note_uses(Op op, const std::vector<TensorRef>& x);
    void touch(const SymbolicTensor& t) { blame_ |= t.inputs; }
    void begin() { blame_ = 0; }
    bool is_zero(Expr e);
    bool proves_nonnegative(Expr e, int depth);
    bool may_define(Expr free_dim, Expr value) const;
    Expr position(Expr at, Expr size);                ///< wraps a negative index
    Expr by_extent(Expr body, int axis, Expr extent); ///< decides comparisons of Index(axis) with its end
    Expr reduce_axis(ReduceOp op, Expr body, int axis, Expr extent);
    void dims_of(Expr e, std::set<int>& dims, std::set<int>& args, bool& loads) const;
    std::string text(Expr e) const;
    std::string text(const std::vector<Expr>& shape) const;

    ExprPool& pool_;
    Assumptions& know_;
    std::uint64_t blame_ = 0;
    std::map<int, unsigned> uses_;
};

} // namespace cubridge::ir::spec
