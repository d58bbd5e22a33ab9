// Intervals of integers whose ends saturate. Private to ir/mask. SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>

namespace cubridge::ir::mask {

/// All integers from `low` to `high`. Beyond 2^62 an end is infinite, or stays at 2^62 where that is the safe side.
struct Interval {
    static constexpr std::int64_t kBelow = INT64_MIN, kAbove = INT64_MAX;
    std::int64_t low = kBelow, high = kAbove;

    bool single() const { return low == high; }
    friend bool operator==(const Interval&, const Interval&) = default;
};

Interval one(std::int64_t value);
Interval hull(const Interval& a, const Interval& b);
Interval add(const Interval& a, const Interval& b);
Interval multiply(const Interval& a, const Interval& b);
Interval power(const Interval& a, std::int64_t n); ///< n >= 1
Interval least(const Interval& a, const Interval& b);
Interval greatest(const Interval& a, const Interval& b);
Interval floor_divide(const Interval& a, const Interval& b);
Interval modulo(const Interval& a, const Interval& b);

} // namespace cubridge::ir::mask
