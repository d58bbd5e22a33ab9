// The table of every function, method and constant that a specification may use: one row each, with its parameters as
// PyTorch writes them. The interpreter binds calls by it, docs/specification.md and the generator of random programs
// are printed from it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/spec/interpreter.h"
#include <span>
#include <string_view>

namespace cubridge::ir::spec {

/// Where a name may stand; a set.
enum Place : unsigned {
    kTorch = 1,       ///< torch.name
    kFunctional = 2,  ///< torch.nn.functional.name
    kMethod = 4,      ///< tensor.name(...): the first parameter is the tensor
    kMath = 8,        ///< math.name
    kBuiltin = 16,    ///< name
    kProperty = 32,   ///< tensor.name, without a call
    kListMethod = 64, ///< list.name(...)
    kView = 128       ///< no place: the result shares memory with the first argument
};

/// The arguments of a call, bound to the row's parameters.
class Args {
public:
    Args(const Routine& routine, Values bound, Interpreter& in)
        : routine_(routine), bound_(std::move(bound)), in_(in) {}
    const Value& operator[](std::size_t k) const { return bound_[k]; }
    bool given(std::size_t k) const { return !bound_[k].none(); }
    TensorRef tensor(std::size_t k) const;          ///< a tensor; Python numbers are wrapped
    int dim(std::size_t k, std::size_t rank) const; ///< 0 <= dim < rank, negative ones wrapped; 0 of a tensor of rank 0
    int axis(std::size_t k, std::size_t rank) const; ///< the same, of a tensor that has axes
    std::int64_t integer(std::size_t k) const;
    bool flag(std::size_t k) const;
    DType dtype(std::size_t k, DType fallback) const;
    Values sizes(std::size_t k) const; ///< a tuple of sizes, or one size
    const std::string& name(std::size_t k) const;
    [[noreturn]] void wrong(std::size_t k, const char* expected) const;
    const Routine& routine() const { return routine_; }

private:
    const Routine& routine_;
    Values bound_;
    Interpreter& in_;
};

struct Routine {
    const char* name;
    unsigned places;
    /// "input, dim, keepdim=False, *, dtype=None"; "*name" takes the rest as a tuple; "name=?" is optional without
    /// value.
    const char* parameters;
    Value (*call)(Interpreter&, Args&);
    const char* note = ""; ///< a restriction, for the documentation
};

/// All rows, in the order of the documentation.
std::span<const Routine> routines();
/// The row of `name` at `place`, or null.
const Routine* find_routine(Place place, std::string_view name);
/// The nearest known name for a hint, or empty.
std::string nearest_routine(Place place, std::string_view name);
/// A constant such as torch.inf, math.pi, torch.float32; nothing where there is none.
std::optional<Value> find_constant(std::string_view module, std::string_view name);

/// Binds a call's arguments to the row's parameters; Failures of kind "type" name the function and the argument.
Args bind(const Routine& routine, Values positional, std::vector<std::pair<std::string, Value>> keywords,
          Interpreter& in);

/// docs/specification.md's table, and the same as JSON for generators.
std::string routines_markdown();
std::string routines_json();

// What the groups of rows share, and tests call directly.
TensorRef softmax(Domain& d, const TensorRef& x, int dim, bool logarithm);
TensorRef logsumexp(Domain& d, const TensorRef& x, const std::vector<int>& dims, bool keepdim);
TensorRef matmul(Domain& d, const TensorRef& a, const TensorRef& b);
TensorRef einsum(Domain& d, std::string_view text, const std::vector<TensorRef>& x);
TensorRef unsqueeze(Domain& d, const TensorRef& t, std::size_t at);
/// Where the largest (or least) stands, the first of equals; t has axes.
TensorRef arg_extremum(Domain& d, const TensorRef& t, int dim, bool keepdim, bool least);
DType floating(DType t); ///< t, or float32 for integers and booleans

// One array per file of rows.
std::span<const Routine> rows_making();
std::span<const Routine> rows_elementwise();
std::span<const Routine> rows_shape();
std::span<const Routine> rows_reduce();
std::span<const Routine> rows_product();
std::span<const Routine> rows_python();

} // namespace cubridge::ir::spec
