// Element types, as PyTorch names them, and its promotion rules. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <optional>
#include <string_view>

namespace cubridge::ir {

enum class DType : std::uint8_t { Bool, U8, I8, I16, I32, I64, E4M3, E5M2, F16, BF16, F32, F64 };

constexpr bool is_float(DType t) {
    return t >= DType::E4M3;
}
constexpr bool is_integer(DType t) {
    return t > DType::Bool && t < DType::E4M3;
} ///< Bool is no integer here
int size_in_bytes(DType t);

/// "float32" and its kin without the `torch.` prefix, aliases ("float", "half", "long", ...) included.
std::optional<DType> dtype_from_torch(std::string_view name);
const char* torch_name(DType t); ///< "float32"

/// "f32", "bf16", "i32", "bool", ...: the names of the command line and of canonical texts.
std::optional<DType> dtype_from_short(std::string_view name);
const char* short_name(DType t);

/// torch.promote_types. Two tensors of rank > 0, or two scalars, of these types give a tensor of that type.
DType promote(DType a, DType b);

} // namespace cubridge::ir
