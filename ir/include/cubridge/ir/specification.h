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

} // namespace cubridge::ir
