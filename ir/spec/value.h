// What a name in a specification can stand for while the text is followed. Cheap to copy; lists are shared as in
// Python. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include "cubridge/ir/error.h"
#include "ir/expr/expr.h"
#include "ir/syntax/ast.h"
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace cubridge::ir::spec {

/// A tensor of whichever domain the text is followed in; only that domain looks inside.
struct TensorBase {
    virtual ~TensorBase() = default;
    DType dtype = DType::F32;
    bool scalar = false; ///< a wrapped Python number
    /// The memory that it shares with its views, as a count of the changes made to it, and the count that it shows. The
    /// interpreter's: a tensor whose version is not the latest is no longer what PyTorch would read.
    mutable std::shared_ptr<int> memory;
    mutable int version = 0;
};
using TensorRef = std::shared_ptr<const TensorBase>;

struct Value;
using Values = std::vector<Value>;

struct NoneValue {};
struct EllipsisValue {};
struct Sequence {
    std::shared_ptr<Values> items;
    bool tuple = false;
};
struct SliceValue {
    std::shared_ptr<const std::array<Value, 3>> parts; ///< start, stop, step; None where not written
};
struct Opaque { ///< a device, a layout, a generator: passed along, never looked at
    const char* what;
};

/// Names of one scope. Owned by the interpreter.
struct Scope {
    std::unordered_map<std::string, Value> names;
    Scope* parent = nullptr;
};

struct FunctionValue { ///< a def or a lambda with the scope that it closes over
    const syntax::Node* node;
    Scope* scope;
    std::shared_ptr<const Values> fallbacks; ///< evaluated defaults, one per parameter; None where there is none
};

struct Routine; ///< a row of the table of accepted functions, see library.h
struct RoutineValue {
    const Routine* routine;
    std::shared_ptr<const Value> self; ///< bound method: its object; else null
};
struct ModuleValue { ///< "torch", "torch.nn.functional", "math"
    std::string path;
};
struct LimitsValue { ///< torch.finfo(dtype), torch.iinfo(dtype)
    DType dtype;
};

struct Value {
    std::variant<NoneValue, bool, std::int64_t, double, std::string, Expr, TensorRef, Sequence, SliceValue,
                 EllipsisValue, FunctionValue, RoutineValue, ModuleValue, DType, LimitsValue, Opaque>
        v;

    Value() = default;
    template <class T> Value(T x) : v(std::move(x)) {}
    Value(const char* s) : v(std::string(s)) {}
    Value(int x) : v(std::int64_t{x}) {}

    template <class T> bool is() const { return std::holds_alternative<T>(v); }
    template <class T> const T& as() const { return std::get<T>(v); }
    bool none() const { return is<NoneValue>(); }
    /// A Python number, known or symbolic.
    bool number() const { return is<bool>() || is<std::int64_t>() || is<double>() || is<Expr>(); }
};

/// "int", "tuple", "tensor", ... as messages call it.
std::string kind_of(const Value& v);

/// Storage of a list, of a tuple, of a function's defaults: however deep they are nested, their end takes no stack.
std::shared_ptr<Values> make_items(Values items);
Value make_tuple(Values items);
Value make_list(Values items);
/// Is `list` somewhere inside `v`? Adds the values looked at to `looked_at`.
bool holds(const Value& v, const Values& list, std::size_t& looked_at);

} // namespace cubridge::ir::spec
