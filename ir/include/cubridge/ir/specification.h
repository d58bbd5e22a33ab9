// A specification: attention as plain PyTorch, parsed, its inputs named and typed. Immutable; owned by whoever holds
// the shared_ptr; any thread may read it. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include "cubridge/ir/error.h"
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace cubridge::ir {

/// What the caller says about one parameter or captured global; everything not said follows from the text.
struct Setting {
    enum class Kind { Constant, Absent, Operand };
    Kind kind = Kind::Constant;
    double value = 0;              ///< Constant
    std::optional<DType> dtype;    ///< Operand
    std::optional<int> rank;       ///< Operand
    std::vector<std::string> axes; ///< Operand: what the caller called its axes ("S", "Hq", "8"); for messages
};

/// What to parse.
struct Source {
    std::string text;
    std::string function = "attention"; ///< or the name of a score_mod or mask_mod
    std::string mask;                   ///< a mask_mod that goes with the score_mod; empty: none
    std::map<std::string, Setting> settings;
};

/// One input of the specification. The number of an input is its position: 0, 1, 2 are query, key and value.
struct Input {
    enum class Role { Query, Key, Value, Tensor, Scalar };
    /// Operand: given at each launch. Bound: a scalar whose value the specification holds, filled in by the launch.
    /// Static: folded into the text's meaning. Absent: None.
    enum class Fate { Operand, Bound, Static, Absent };
    std::string name;
    Role role = Role::Tensor;
    Fate fate = Fate::Operand;
    DType dtype = DType::F32;
    int rank = 0;
    bool global = false; ///< a captured module global, not a parameter
    bool chosen = false; ///< type or rank was inferred with more than one possibility: shown to the user
    double value = 0;    ///< Bound and Static
    Span span;
};

/// What a kernel is asked for. Sizes 0 mean: not given (see `defaults` in request.h).
struct Request {
    DType q_dtype = DType::BF16, kv_dtype = DType::BF16, o_dtype = DType::BF16;
    int head_dim = 0, head_dim_v = 0;
    int group = 1; ///< query heads per KV head
    int heads = 0; ///< query heads of the whole model; 0: any
    enum class Layout { Dense, Ragged, Paged } layout = Layout::Dense;
    int page_size = 0;
    enum class Phase { Mixed, Prefill, Decode } phase = Phase::Mixed;
    enum class Rows { AsWritten, Tail } rows = Rows::AsWritten;
    enum class EmptyRows { AsWritten, Zero } empty_rows = EmptyRows::AsWritten;
    enum class Lse { None, Natural, Log2 } lse = Lse::None;
    int alignment = 16;
    std::uint32_t flags = 0;
    std::string arch; ///< "sm_90a"
};

/// A tensor of the reference evaluator: row major, float64; integers and booleans are exact.
struct Array {
    DType dtype = DType::F64;
    std::vector<std::int64_t> shape;
    std::vector<double> values;
};

/// What an input is in one evaluation: an Array (of rank 0 for a scalar), or nothing for the value that the
/// specification holds (Bound, Static, Absent).
using Argument = std::optional<Array>;

struct ParseOptions {
    int heads = 0; ///< query heads of the model, for a text that computes with their number; 0: a stand-in of 8
    bool certify =
        true; ///< evaluate text, Scalar and Variant on small shapes and compare; off in benchmarks of parts only
    std::uint64_t seed = 1;
    /// Units of work (ir/expr/meter.h) after which the text is refused with "limit": what bounds time. Texts as people
    /// write them take a sixteenth of it at most.
    std::uint64_t work = kParseWork;
    static constexpr std::uint64_t kParseWork = 2'500'000;
};

struct Scalar;  // ir/spec/scalar.h
struct Variant; // ir/spec/variant.h

/// A text that was understood. Made by parse(); immutable, shared, any thread.
class Specification {
public:
    /// Follows the text, infers what it leaves open, makes its Scalar and its Variant and certifies both against the
    /// text. Milliseconds; time and memory are bounded whatever the text. Errors: see Error::kind.
    static Result<std::shared_ptr<const Specification>> parse(const Source& source, const ParseOptions& options = {});
    ~Specification();

    const Source& source() const;
    const std::vector<Input>& inputs() const;
    /// What keys name: the canonical Variant ("cubridge-variant 1"), or the canonical print of the Scalar
    /// ("cubridge-program 1") where there is no Variant.
    const std::string& subject() const;
    bool has_variant() const;
    /// Why there is no Variant; empty where there is one.
    const std::string& no_variant_reason() const;
    /// The inputs that the subject names beyond q, k, v, in its order, as numbers of inputs(): Operands and Bounds
    /// only. Two texts of one subject may list them differently.
    std::vector<int> order() const;
    const Scalar& scalar() const;
    const Variant* variant() const;                ///< null where there is none
    int heads() const;                             ///< the number of query heads that the text computed with; 0: any
    std::uint64_t work() const;                    ///< units of work that the parse took, see ParseOptions::work
    const std::vector<std::string>& notes() const; ///< what was chosen where several readings fit
    std::size_t outputs() const;                   ///< 1, or 2 with an LSE

    /// The text itself, followed on arrays in float64: the reference. `inputs` in the order of inputs(). `budget`
    /// bounds the elements of all temporaries.
    Result<std::vector<Array>> evaluate(const std::vector<Argument>& inputs,
                                        std::int64_t budget = std::int64_t{1} << 28) const;
    /// The Scalar, on the same inputs.
    Result<std::vector<Array>> evaluate_scalar(const std::vector<Argument>& inputs) const;

    struct State;
    explicit Specification(std::unique_ptr<State> state);

private:
    std::unique_ptr<State> state_;
};

} // namespace cubridge::ir
