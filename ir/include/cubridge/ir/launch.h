// The launch plan: how the entries of one cubin are launched. Everything that depends on a launch is an integer
// expression over launch sizes, so that the plan is a value: stored beside the cubin, printed, compared, evaluated by
// any process. Immutable; any thread may read it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include "cubridge/ir/error.h"
#include "cubridge/ir/kernel_abi.h"
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::ir::launch {

/// What a launch knows. Operand sizes stand in Sizes::operand.
enum class Size : std::uint8_t { Requests, HeadsQ, HeadsKv, MaxQ, MaxKv, TotalQ, SmCount, HeadBegin, Count };
const char* name(Size s); ///< "max_kv", as texts spell it

struct Sizes {
    std::array<std::int64_t, static_cast<std::size_t>(Size::Count)> value{};
    std::vector<std::array<std::int64_t, 4>> operand; ///< by operand and axis
    std::int64_t operator[](Size s) const { return value[static_cast<std::size_t>(s)]; }
    std::int64_t& operator[](Size s) { return value[static_cast<std::size_t>(s)]; }
};

/// An integer expression in postfix form. Overflow of 64 bits makes the whole launch unsupported.
struct Code {
    enum class Do : std::uint8_t {
        Push,
        PushSize,
        PushOperand,
        Add,
        Sub,
        Mul,
        FloorDiv,
        CeilDiv,
        Mod,
        Min,
        Max,
        RoundUp
    };
    struct Step {
        Do what;
        std::int64_t value = 0; ///< Push: the number; PushSize: a Size; PushOperand: operand * 4 + axis
        bool operator==(const Step&) const = default;
    };
    std::vector<Step> steps;

    static Code constant(std::int64_t v);
    static Code size(Size s);
    static Code operand(int operand, int axis);
    static Code binary(Do what, Code a, Code b);
    /// Nothing: overflow, a division by zero or a malformed code.
    std::optional<std::int64_t> evaluate(const Sizes& sizes) const;
    std::string text() const; ///< postfix, blank separated: "max_kv 4 *"
    static Result<Code> parse(const std::string& text);
    bool operator==(const Code&) const = default;
};

/// One operand as the kernel expects it, in the order of the specification's operands.
struct Operand {
    std::string name;
    DType dtype = DType::F32;
    int rank = 0;            ///< 0: a scalar, taken from `data` or from the immediate value
    bool bound = false;      ///< its value is in the specification: not listed to the caller, filled by the launch
    double value = 0;        ///< bound
    std::vector<Code> least; ///< least size of each axis, checked at launch (UNSUPPORTED, nothing enqueued)
    /// Bytes; not 0: rows are copied so many at a time, as those of k and v: data and strides are multiples, the last
    /// axis is contiguous. Checked like `least`.
    int alignment = 0;
    bool operator==(const Operand&) const = default;
};

/// A condition that a launch must satisfy: left OP right.
struct Condition {
    enum class Kind : std::uint8_t { Equal, AtLeast, Divides } kind;
    Code left, right;
    std::string text; ///< "Sq == Sk"; the message names it
    bool operator==(const Condition&) const = default;
};

/// One grid.
struct Entry {
    std::string name;         ///< of the kernel in the cubin
    std::array<Code, 3> grid; ///< a grid with a zero is skipped
    std::array<int, 3> block{};
    int shared_bytes = 0; ///< dynamic
    bool operator==(const Entry&) const = default;
};

/// A tensor map that the launch encodes into the argument block: copies of `rows` rows of 64 columns.
struct Map {
    enum class Tensor : std::uint8_t { Q, K, V, O } tensor = Tensor::Q; ///< its number is the map's in the block
    int rows = 0;                                                       ///< 1 to 256
    int step = 1; ///< of the tensor's rows, the map's are every step-th: 1 to 1024
    bool operator==(const Map&) const = default;
};
/// Whether a plan may have the second map beside the first.
bool beside(const Map& a, const Map& b);
const char* name(Map::Tensor t); ///< "q", as texts spell it

inline constexpr std::size_t kMaxEntries = 8;
inline constexpr int kTicketBytes = 256; ///< of the workspace, at its end, where a plan has a ticket

struct Plan {
    int abi = ir::abi::kKernelAbi; ///< of the argument block that the kernel reads (docs/kernel-abi.md)
    std::vector<Entry> entries;    ///< one to kMaxEntries, launched in order on one stream
    Code workspace;                ///< bytes, those of the ticket among them
    std::vector<Map> maps;         ///< one a tensor; of K and V one with a step beside one without
    bool ticket = false;           ///< two ints at the workspace's end that the launch sets to 0
    std::vector<Operand> operands;
    std::vector<Condition> conditions;
    bool writes_lse = false;
    bool operator==(const Plan&) const = default;

    std::string text() const; ///< versioned, line by line; parse(text()) gives an equal plan
    static Result<Plan> parse(const std::string& text);
};

} // namespace cubridge::ir::launch
