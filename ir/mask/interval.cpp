// SPDX-License-Identifier: Apache-2.0
#include "ir/mask/interval.h"
#include "ir/expr/expr.h"
#include <algorithm>

namespace cubridge::ir::mask {

namespace {

__extension__ typedef __int128 Wide;

constexpr std::int64_t kBelow = Interval::kBelow, kAbove = Interval::kAbove, kLimit = std::int64_t{1} << 62;

bool finite(std::int64_t v) {
    return v != kBelow && v != kAbove;
}
std::int64_t as_low(Wide v) {
    return v < -Wide(kLimit) ? kBelow : static_cast<std::int64_t>(std::min(v, Wide(kLimit)));
}
std::int64_t as_high(Wide v) {
    return v > Wide(kLimit) ? kAbove : static_cast<std::int64_t>(std::max(v, -Wide(kLimit)));
}

// Least and greatest of `of` at the four corners; `of` gives the limit where an end is infinite.
template <class F> Interval corners(const Interval& a, const Interval& b, F of) {
    const Wide x[] = {of(a.low, b.low), of(a.low, b.high), of(a.high, b.low), of(a.high, b.high)};
    return {as_low(*std::min_element(x, x + 4)), as_high(*std::max_element(x, x + 4))};
}

constexpr Wide kInfinite = Wide(1) << 100;

Wide product(std::int64_t a, std::int64_t b) {
    if (a == 0 || b == 0) return 0;
    if (finite(a) && finite(b)) return Wide(a) * b;
    return (a < 0) == (b < 0) ? kInfinite : -kInfinite;
}
Wide quotient(std::int64_t a, std::int64_t b) { // b > 0
    if (!finite(a)) return a < 0 ? -kInfinite : kInfinite;
    return floor_div(a, finite(b) ? b : kLimit);
}

Wide raised(std::int64_t v, std::int64_t n) {
    if (v >= -1 && v <= 1) return v < 0 && n % 2 == 0 ? 1 : v;
    const Wide beyond = v < 0 && n % 2 != 0 ? -kInfinite : kInfinite;
    if (!finite(v)) return beyond;
    Wide r = 1;
    for (std::int64_t k = 0; k < n; ++k) {
        r *= v;
        if (r > kLimit || r < -Wide(kLimit)) return k + 1 == n ? r : beyond;
    }
    return r;
}

} // namespace

Interval one(std::int64_t v) {
    return {as_low(v), as_high(v)};
}

Interval hull(const Interval& a, const Interval& b) {
    return {std::min(a.low, b.low), std::max(a.high, b.high)};
}

Interval add(const Interval& a, const Interval& b) {
    return {a.low == kBelow || b.low == kBelow ? kBelow : as_low(Wide(a.low) + b.low),
            a.high == kAbove || b.high == kAbove ? kAbove : as_high(Wide(a.high) + b.high)};
}

Interval multiply(const Interval& a, const Interval& b) {
    return corners(a, b, product);
}

Interval power(const Interval& a, std::int64_t n) {
    if (n % 2 == 0 && a.low < 0) { // no square is below 0
        const Interval minus = multiply(a, one(-1));
        return power(a.high <= 0 ? minus : Interval{0, hull(a, minus).high}, n);
    }
    return {as_low(raised(a.low, n)), as_high(raised(a.high, n))};
}

Interval least(const Interval& a, const Interval& b) {
    return {std::min(a.low, b.low), std::min(a.high, b.high)};
}

Interval greatest(const Interval& a, const Interval& b) {
    return {std::max(a.low, b.low), std::max(a.high, b.high)};
}

Interval floor_divide(const Interval& a, const Interval& b) {
    if (b == Interval{0, 0}) return b;
    if (b.low > 0) return corners(a, b, quotient);
    if (b.high < 0 && b.low != kBelow) return floor_divide(multiply(a, one(-1)), multiply(b, one(-1)));
    return {};
}

Interval modulo(const Interval& a, const Interval& b) {
    if (b == Interval{0, 0}) return b;
    if (b.single() && finite(a.low) && finite(a.high) && floor_div(a.low, b.low) == floor_div(a.high, b.low))
        return {floor_mod(a.low, b.low), floor_mod(a.high, b.low)};
    if (b.low >= 0) return {0, b.high == kAbove ? kAbove : std::max<std::int64_t>(0, b.high - 1)};
    if (b.high <= 0) return {b.low == kBelow ? kBelow : b.low + 1, 0};
    return {b.low == kBelow ? kBelow : b.low + 1, b.high == kAbove ? kAbove : b.high - 1};
}

} // namespace cubridge::ir::mask
