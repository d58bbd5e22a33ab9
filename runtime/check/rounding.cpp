// Rounding to the floating types of PyTorch, and their bits. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/rounding.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace cubridge::runtime {

namespace {

using ir::DType;

struct Format {
    int mantissa, exponent; ///< bits
    int least;              ///< exponent of the smallest normal number
    double largest;
    bool infinite; ///< beyond the largest comes infinity; else NaN
};

const Format* format(DType t) {
    static constexpr Format f16{10, 5, -14, 65504.0, true}, bf16{7, 8, -126, 0x1.fep127, true};
    static constexpr Format e4m3{3, 4, -6, 448.0, false}, e5m2{2, 5, -14, 57344.0, true};
    switch (t) {
    case DType::F16: return &f16;
    case DType::BF16: return &bf16;
    case DType::E4M3: return &e4m3;
    case DType::E5M2: return &e5m2;
    default: return nullptr;
    }
}

double step(double value, const Format& f) {
    const int e = value == 0 ? f.least : std::max(std::ilogb(value), f.least);
    return std::ldexp(1.0, e - f.mantissa);
}

std::uint32_t bits_of(double v, const Format& f) {
    const std::uint32_t sign = std::signbit(v) ? 1U << (f.mantissa + f.exponent) : 0;
    const std::uint32_t ones = (1U << f.exponent) - 1;
    if (v != v) return sign | ones << f.mantissa | ((1U << f.mantissa) - 1);
    const double a = std::fabs(v);
    if (std::isinf(a)) return sign | ones << f.mantissa;
    if (a < std::ldexp(1.0, f.least))
        return sign | static_cast<std::uint32_t>(a / std::ldexp(1.0, f.least - f.mantissa));
    const int e = std::ilogb(a);
    const auto m = static_cast<std::uint32_t>(std::ldexp(a, f.mantissa - e)) - (1U << f.mantissa);
    return sign | static_cast<std::uint32_t>(e - f.least + 1) << f.mantissa | m;
}

double value_of(std::uint32_t bits, const Format& f) {
    const double sign = (bits >> (f.mantissa + f.exponent) & 1U) != 0 ? -1 : 1;
    const std::uint32_t ones = (1U << f.exponent) - 1, m = bits & ((1U << f.mantissa) - 1),
                        e = bits >> f.mantissa & ones;
    if (e == ones && (f.infinite || m == (1U << f.mantissa) - 1))
        return f.infinite && m == 0 ? sign * std::numeric_limits<double>::infinity()
                                    : std::numeric_limits<double>::quiet_NaN();
    if (e == 0) return sign * std::ldexp(m, f.least - f.mantissa);
    return sign * std::ldexp(1.0 + std::ldexp(m, -f.mantissa), static_cast<int>(e) - 1 + f.least);
}

template <class T> void put(double value, std::byte* to) {
    const T x = static_cast<T>(value);
    std::memcpy(to, &x, sizeof x);
}
template <class T> double get(const std::byte* from) {
    T x;
    std::memcpy(&x, from, sizeof x);
    return static_cast<double>(x);
}

} // namespace

double rounded(double value, DType type) {
    if (type == DType::F64) return value;
    if (type == DType::F32) return static_cast<double>(static_cast<float>(value));
    if (type == DType::Bool) return value != 0 ? 1 : 0;
    const Format* f = format(type);
    if (f == nullptr) return std::trunc(value);
    if (!std::isfinite(value)) return value;
    const double s = step(value, *f), r = std::nearbyint(value / s) * s;
    if (std::fabs(r) <= f->largest) return r;
    return f->infinite ? std::copysign(std::numeric_limits<double>::infinity(), value)
                       : std::numeric_limits<double>::quiet_NaN();
}

void encode(double value, DType type, std::byte* to) {
    switch (type) {
    case DType::F64: return put<double>(value, to);
    case DType::F32: return put<float>(value, to);
    case DType::I64: return put<std::int64_t>(value, to);
    case DType::I32: return put<std::int32_t>(value, to);
    case DType::I16: return put<std::int16_t>(value, to);
    case DType::I8: return put<std::int8_t>(value, to);
    case DType::U8: return put<std::uint8_t>(value, to);
    case DType::Bool: return put<std::uint8_t>(value != 0 ? 1 : 0, to);
    default: break;
    }
    const std::uint32_t bits = bits_of(rounded(value, type), *format(type));
    for (int k = 0; k < ir::size_in_bytes(type); ++k) to[k] = static_cast<std::byte>(bits >> (8 * k) & 255U);
}

double decode(const std::byte* from, DType type) {
    switch (type) {
    case DType::F64: return get<double>(from);
    case DType::F32: return get<float>(from);
    case DType::I64: return get<std::int64_t>(from);
    case DType::I32: return get<std::int32_t>(from);
    case DType::I16: return get<std::int16_t>(from);
    case DType::I8: return get<std::int8_t>(from);
    case DType::U8:
    case DType::Bool: return get<std::uint8_t>(from);
    default: break;
    }
    std::uint32_t bits = 0;
    for (int k = 0; k < ir::size_in_bytes(type); ++k) bits |= std::to_integer<std::uint32_t>(from[k]) << (8 * k);
    return value_of(bits, *format(type));
}

double ulp(double value, DType type) {
    if (type == DType::F32 || type == DType::F64) {
        const int digits = type == DType::F32 ? 23 : 52, least = type == DType::F32 ? -126 : -1022;
        return std::ldexp(1.0,
                          std::max(value == 0 || !std::isfinite(value) ? least : std::ilogb(value), least) - digits);
    }
    const Format* f = format(type);
    return f == nullptr ? 0 : step(std::isfinite(value) ? value : 0, *f);
}

} // namespace cubridge::runtime
