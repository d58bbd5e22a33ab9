// A real number as an integer: one meaning for the text, its evaluators and its kernels. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include <cmath>
#include <cstdint>
#include <limits>

namespace cubridge::ir {

/// Integers up to it are exact in float64.
inline constexpr std::int64_t kWholeNumbers = std::int64_t{1} << 53;

/// Towards zero. NaN is 0; what is beyond kWholeNumbers stays at the end of int32, where a GPU's conversion stays too.
inline std::int64_t narrowed(double value) {
    if (std::isnan(value)) return 0;
    if (value > static_cast<double>(kWholeNumbers)) return std::numeric_limits<std::int32_t>::max();
    if (value < -static_cast<double>(kWholeNumbers)) return std::numeric_limits<std::int32_t>::min();
    return static_cast<std::int64_t>(value);
}

} // namespace cubridge::ir
