// Values of a running program: scalars, rows, columns, tiles, tuples, key ranges, and handles of storage, barriers and
// tensors. Arrays are immutable once they are shared; a Value is 32 bytes and cheap to copy. One thread.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/expr/ops.h"
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace cubridge::ir::cuir {

/// Counted without atomics: a run belongs to one thread.
struct Object {
    int references = 0;
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    virtual ~Object() = default;
};

void release(Object* object); ///< one reference less; the last one deletes

template <class T> class Ref {
public:
    Ref() = default;
    explicit Ref(T* object) : object_(object) { take(); }
    Ref(const Ref& o) : object_(o.object_) { take(); }
    Ref(Ref&& o) noexcept : object_(std::exchange(o.object_, nullptr)) {}
    template <class U> Ref(const Ref<U>& o) : object_(o.get()) { take(); }
    Ref& operator=(Ref o) noexcept {
        std::swap(object_, o.object_);
        return *this;
    }
    ~Ref() {
        if (object_) release(object_);
    }
    T* get() const { return object_; }
    T* operator->() const { return object_; }
    T& operator*() const { return *object_; }
    explicit operator bool() const { return object_ != nullptr; }

private:
    void take() {
        if (object_) ++object_->references;
    }
    T* object_ = nullptr;
};

enum class Number : std::uint8_t { Bool, Int, Real };

/// A row (R, 1), a column (1, C) or a tile (R, C), row major.
class Array final : public Object {
public:
    Array(Number number, int rows, int cols)
        : number(number), rows(rows), cols(cols),
          large_(size() > kSmall ? std::make_unique<double[]>(static_cast<std::size_t>(size())) : nullptr),
          data(large_ ? large_.get() : small_) {}
    int size() const { return rows * cols; }
    /// Of an array of more rows and columns that this one is stretched to.
    double at(int r, int c) const { return data[(rows == 1 ? 0 : r) * cols + (cols == 1 ? 0 : c)]; }

    Number number;
    int rows, cols;

private:
    static constexpr int kSmall = 12;
    double small_[kSmall];
    std::unique_ptr<double[]> large_;

public:
    double* data;
};

/// Key tiles, from the highest of the first range down. Never empty: an empty list has the tile (0, masked).
struct Ranges final : Object {
    struct Range {
        std::int64_t begin, end;
        bool masked;
    };
    std::vector<Range> list;

    std::int64_t length() const;
    std::pair<std::int64_t, bool> pick(std::int64_t k) const; ///< 0 <= k < length()
};

constexpr int kElements = 1 << 18;                        ///< of one array; more is a trouble of kind "limit"
constexpr std::int64_t kIntegers = std::int64_t{1} << 53; ///< positions and counts are below it

struct Value {
    enum class Tag : std::uint8_t {
        None, ///< a name without a value
        Bool,
        Int,
        Real,
        Array,
        Tuple,
        Ranges,
        Place,   ///< cells of a buffer: `index` its number, `first` the first cell, `depth` leading indices given
        Barrier, ///< `index` the group's number, `first` the barrier, `depth` 1 if it is one
        Named,   ///< likewise
        Channel, ///< `index`
        Tensor,  ///< `index`
        Slice,   ///< of a tensor
        Type,    ///< `index` is a DType
        Text,    ///< a string: an order, a role's name
    };
    Tag tag = Tag::None;
    std::uint8_t depth = 0;
    std::int32_t first = 0;
    std::uint32_t version = 0; ///< of a Place that a name stands for: the write that it saw, 0 for the storage itself
    union {
        std::int64_t index = 0;
        double real;
    };
    Ref<Object> object;

    static Value boolean(bool x) { return scalar(Tag::Bool, x ? 1 : 0); }
    static Value integer(std::int64_t x) { return scalar(Tag::Int, x); }
    static Value number(double x) {
        Value v;
        v.tag = Tag::Real;
        v.real = x;
        return v;
    }
    static Value handle(Tag tag, std::int64_t index) { return scalar(tag, index); }
    static Value of(const Ref<Array>& array) { return with(Tag::Array, array); }
    static Value of(const Ref<Ranges>& ranges) { return with(Tag::Ranges, ranges); }
    static Value tuple(std::vector<Value> items);

    bool is_scalar() const { return tag >= Tag::Bool && tag <= Tag::Real; }
    bool is_integer() const { return tag == Tag::Bool || tag == Tag::Int; }
    double as_real() const { return tag == Tag::Real ? real : static_cast<double>(index); }
    const Array& array() const { return static_cast<const Array&>(*object); }
    const Ranges& ranges() const { return static_cast<const Ranges&>(*object); }
    const std::vector<Value>& items() const;

private:
    static Value scalar(Tag tag, std::int64_t x) {
        Value v;
        v.tag = tag;
        v.index = x;
        return v;
    }
    template <class T> static Value with(Tag tag, const Ref<T>& object) {
        Value v;
        v.tag = tag;
        v.object = object;
        return v;
    }
};

struct Tuple final : Object {
    std::vector<Value> items;
};

std::string describe(const Value& value); ///< "a row of 4", "an integer": for messages

/// What a finding is before its place is known. Thrown inside the executor only.
struct Trouble {
    std::string kind, message;
    int other = 0;
};
[[noreturn]] void trouble(std::string kind, std::string message, int other = 0);

/// Elementwise with broadcasting; scalars and arrays only. Integers stay integers where the operator has them.
Value apply(Op op, const Value* x, int count);
/// NaN beyond 0.5, so that a program is found wrong that does not ask first.
Value tanh_small(const Value& x);
Value logistic_small(const Value& x); ///< 1 / (2^x + 1); NaN beyond 31
/// The same with one float32 rounding, as the table says: `f32.log(x)`.
Value apply_f32(Op op, const Value* x, int count);
Value to_real(const Value& x);    ///< f32(x)
Value to_integer(const Value& x); ///< i32(x): truncates
Value largest(const Array& x);    ///< of each row; NaN wins
Value total(const Array& x);      ///< of each row

} // namespace cubridge::ir::cuir
