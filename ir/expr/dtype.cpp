// Names, sizes and promotion of the element types. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/dtype.h"
#include <algorithm>
#include <array>

namespace cubridge::ir {

namespace {

struct Names {
    const char* torch;
    const char* brief;
    std::string_view alias; // torch's second name, or nothing
    int bytes;
};

constexpr std::array<Names, 12> kNames{{
    {"bool", "bool", "", 1},
    {"uint8", "u8", "", 1},
    {"int8", "i8", "", 1},
    {"int16", "i16", "short", 2},
    {"int32", "i32", "int", 4},
    {"int64", "i64", "long", 8},
    {"float8_e4m3fn", "e4m3", "", 1},
    {"float8_e5m2", "e5m2", "", 1},
    {"float16", "f16", "half", 2},
    {"bfloat16", "bf16", "", 2},
    {"float32", "f32", "float", 4},
    {"float64", "f64", "double", 8},
}};

const Names& names(DType t) {
    return kNames[static_cast<std::size_t>(t)];
}

constexpr bool is_float8(DType t) {
    return t == DType::E4M3 || t == DType::E5M2;
}

} // namespace

int size_in_bytes(DType t) {
    return names(t).bytes;
}

const char* torch_name(DType t) {
    return names(t).torch;
}

const char* short_name(DType t) {
    return names(t).brief;
}

std::optional<DType> dtype_from_torch(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i)
        if (name == kNames[i].torch || (!name.empty() && name == kNames[i].alias)) return static_cast<DType>(i);
    return std::nullopt;
}

std::optional<DType> dtype_from_short(std::string_view name) {
    for (std::size_t i = 0; i < kNames.size(); ++i)
        if (name == kNames[i].brief) return static_cast<DType>(i);
    return std::nullopt;
}

DType promote(DType a, DType b) {
    if (a == b) return a;
    if (a > b) std::swap(a, b);
    if (!is_float(b)) return a == DType::U8 && b == DType::I8 ? DType::I16 : b;
    if (!is_float(a)) return b;
    // PyTorch refuses to promote float8; a specification that runs there never asks. The wider type holds both.
    if (is_float8(a)) return is_float8(b) ? DType::F32 : b;
    return a == DType::F16 && b == DType::BF16 ? DType::F32 : b;
}

} // namespace cubridge::ir
