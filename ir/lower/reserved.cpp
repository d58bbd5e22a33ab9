// Identifiers that are taken. SPDX-License-Identifier: Apache-2.0
#include "ir/lower/reserved.h"
#include <algorithm>
#include <array>

namespace cubridge::ir::lower {
namespace {

using namespace std::string_view_literals;

constexpr std::array kWords{
    // C++ that is no Python
    "alignas"sv, "alignof"sv, "asm"sv, "auto"sv, "bool"sv, "case"sv, "catch"sv, "char"sv, "const"sv, "constexpr"sv,
    "decltype"sv, "default"sv, "delete"sv, "do"sv, "double"sv, "enum"sv, "explicit"sv, "export"sv, "extern"sv,
    "false"sv, "float"sv, "friend"sv, "goto"sv, "inline"sv, "int"sv, "long"sv, "mutable"sv, "namespace"sv, "new"sv,
    "noexcept"sv, "nullptr"sv, "operator"sv, "private"sv, "protected"sv, "public"sv, "register"sv, "restrict"sv,
    "short"sv, "signed"sv, "sizeof"sv, "static"sv, "struct"sv, "switch"sv, "template"sv, "this"sv, "throw"sv, "true"sv,
    "typedef"sv, "typeid"sv, "typename"sv, "union"sv, "unsigned"sv, "using"sv, "virtual"sv, "void"sv, "volatile"sv,
    "xor"sv, "compl"sv, "bitand"sv, "bitor"sv,
    // of the preamble and of openings
    "args"sv, "raw"sv, "smem"sv, "key_length"sv, "workspace_end"sv, "bf16"sv, "f16"sv, "i64"sv, "u32"sv, "u64"sv,
    "threadIdx"sv, "blockIdx"sv, "blockDim"sv, "gridDim"sv, "by_head"sv, "heaviest_first"sv, "FN"sv, "MEMBER"sv,
    "UNROLL"sv, "INF"sv, "LOG2E"sv, "LN2"sv, "ROWS"sv, "COLS"sv, "TILE"sv, "FRAGMENTS"sv, "ROW"sv, "CID"sv, "EACH"sv,
    "EACH_ROW"sv, "EACH_COL"sv, "Rows"sv, "Cols"sv, "Items"sv, "Ranges"sv, "Operand"sv, "Tensor"sv, "Work"sv,
    "Shared"sv, "SharedColumn"sv, "Fragment"sv, "min"sv, "max"sv, "abs"sv, "clamp"sv, "bounded"sv, "cdiv"sv,
    "floor_div"sv, "mod"sv, "sigmoid"sv, "classify"sv, "narrow"sv, "widen"sv, "copy"sv, "copy_async"sv, "wait_copies"sv,
    "bar_sync"sv, "gemm"sv, "gemm_add"sv, "transposed"sv, "pack"sv, "store"sv, "load"sv, "store_rows"sv, "store_tile"sv,
    "gemm_async"sv, "wait"sv, "wait_gemm"sv, "wait_stores"sv, "arrive"sv, "sync"sv, "fence_async"sv, "Barriers"sv,
    "NamedBarriers"sv, "Channel"sv, "Draw"sv, "Mapped"sv, "warp"sv, "warpgroup"sv, "begin_roles"sv, "fewer_registers"sv,
    "more_registers"sv, "thread_max_of"sv, "Classes"sv, "row_max_of"sv, "columns_of"sv, "logistic_of"sv,
    "logistic_small"sv, "Taken"sv, "row_sum_of"sv, "quad_sum"sv, "exp2_fast"sv, "rcp_fast"sv, "tanh_fast"sv,
    "tanh_small"sv, "fmaxf"sv, "fminf"sv};

} // namespace

bool is_reserved(std::string_view name) {
    const bool vote =
        name.size() > 4 && name.substr(0, 4) == "vote" && name.find_first_not_of("0123456789", 4) == name.npos;
    // Lists of the Hopper preamble's instructions: A1, F16, ...
    const bool list =
        name.size() > 1 && (name[0] == 'A' || name[0] == 'F') && name.find_first_not_of("0123456789", 1) == name.npos;
    return vote || list || name == "FX" || std::find(kWords.begin(), kWords.end(), name) != kWords.end() ||
           name.find("__") != name.npos;
}

} // namespace cubridge::ir::lower
