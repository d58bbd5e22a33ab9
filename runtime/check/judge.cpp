// Comparing arrays. SPDX-License-Identifier: Apache-2.0
#include "runtime/check/judge.h"
#include "runtime/check/rounding.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <limits>

namespace cubridge::runtime {

namespace {

using ir::Array;

constexpr std::size_t kNeighbours = 32; // rows

// "o[1, 0, 17, 3]"
std::string place(const char* what, const Array& a, std::size_t n) {
    std::vector<std::int64_t> at(a.shape.size());
    auto rest = static_cast<std::int64_t>(n);
    for (std::size_t k = a.shape.size(); k-- > 0;) {
        at[k] = rest % a.shape[k];
        rest /= a.shape[k];
    }
    std::string s;
    for (const std::int64_t i : at) s += (s.empty() ? "" : ", ") + std::to_string(i);
    return fmt::format("{}[{}]", what, s);
}

// Both have the same special value there, or neither has one.
bool same_kind(double got, double exact) {
    if (std::isnan(got) || std::isnan(exact)) return std::isnan(got) && std::isnan(exact);
    if (std::isinf(got) || std::isinf(exact)) return got == exact;
    return true;
}

bool comparable(const char* what, const Array& got, const Array& exact, Judgement& j) {
    if (got.shape == exact.shape && got.values.size() == exact.values.size()) return true;
    j.wrong = std::string(what) + " has another shape than the reference";
    return false;
}

std::string differs(const char* what, const Array& a, std::size_t n, double got, double exact) {
    return fmt::format("{} is {:.9g}, the reference gives {:.9g}", place(what, a, n), got, exact);
}

struct Bounds {
    double l2;
    bool positions; // rounding a score near a position costs float32 digits that the output's own type still has
};

Bounds bounds_of(ir::DType type) {
    switch (type) {
    case ir::DType::F16: return {2e-3, false};
    case ir::DType::BF16: return {1e-2, false};
    default: return {1e-5, true};
    }
}

// The largest error of a row, and of those up to kNeighbours rows away of the `rows` that belong together.
std::vector<double> nearby(const std::vector<double>& errors, std::size_t rows) {
    std::vector<double> out(errors.size());
    for (std::size_t r = 0; r < errors.size(); ++r) {
        const std::size_t first = r / rows * rows, at = r - first;
        const auto begin = errors.begin() + static_cast<std::ptrdiff_t>(first + at - std::min(at, kNeighbours)),
                   end = errors.begin() + static_cast<std::ptrdiff_t>(first + std::min(rows, at + kNeighbours + 1));
        out[r] = *std::max_element(begin, end);
    }
    return out;
}

std::size_t axis_from_end(const Array& a, std::size_t n) {
    return a.shape.size() < n ? 1 : std::max<std::size_t>(1, static_cast<std::size_t>(a.shape[a.shape.size() - n]));
}

// Sums for a relative L2 error.
struct Squares {
    double error = 0, norm = 0;
    void add(double off, double exact) {
        error += off * off;
        norm += exact * exact;
    }
    double relative() const {
        return norm > 0 ? std::sqrt(error / norm) : error > 0 ? std::numeric_limits<double>::infinity() : 0;
    }
};

// What the baseline is off by in each row's neighbourhood, with what rounding its output may cost: rounded, its error
// might vanish by luck.
std::vector<double> baseline_errors(const Array& baseline, const Array& exact, ir::DType type, Squares& all) {
    const std::size_t width = axis_from_end(exact, 1);
    std::vector<double> errors(exact.values.size() / width);
    for (std::size_t n = 0; n < exact.values.size(); ++n) {
        const double off = std::fabs(baseline.values[n] - exact.values[n]);
        if (!std::isfinite(off)) continue;
        errors[n / width] = std::max(errors[n / width], off + ulp(exact.values[n], type) / 2);
        all.add(off, exact.values[n]);
    }
    return nearby(errors, axis_from_end(exact, 2));
}

} // namespace

Judgement judge_output(const Array& got, const Array& exact, ir::DType type, std::int64_t reach, const Array* measured,
                       std::size_t parts) {
    Judgement j;
    if (!comparable("o", got, exact, j)) return j;
    if (measured && !comparable("the baseline's o", *measured, exact, j)) return j;
    Squares all, by;
    const std::vector<double> errors = measured ? baseline_errors(*measured, exact, type, by) : std::vector<double>();
    const std::size_t width = axis_from_end(exact, 1);
    const Bounds bounds = bounds_of(type);
    for (std::size_t begin = 0; begin < exact.values.size(); begin += width) {
        double largest = 0, once = 0;
        for (std::size_t n = begin; n < begin + width; ++n) {
            if (!std::isfinite(exact.values[n])) continue;
            largest = std::max(largest, std::fabs(exact.values[n]));
            once = std::max(once, std::fabs(rounded(exact.values[n], type) - exact.values[n]));
        }
        double baseline = std::max(measured ? errors[begin / width] : once, ulp(largest, type) / 2);
        if (bounds.positions)
            baseline += std::ldexp(largest, -24) * static_cast<double>(std::max<std::int64_t>(16, reach));
        for (std::size_t n = begin; n < begin + width; ++n) {
            const double e = exact.values[n], g = got.values[n];
            // Beyond the largest number of the type the exact value is an infinity too.
            if (!same_kind(g, std::isfinite(e) ? rounded(e, type) : e) && !same_kind(g, e)) {
                j.wrong = differs("o", exact, n, g, e);
                j.ratio = std::numeric_limits<double>::infinity();
                return j;
            }
            if (!std::isfinite(e) || !std::isfinite(g)) continue;
            const double off = std::fabs(g - e), ratio = off / baseline;
            all.add(off, e);
            if (ratio > 2 && j.wrong.empty())
                j.wrong = differs("o", exact, n, g, e) + fmt::format(", {:.2f} times the baseline's error", ratio);
            j.ratio = std::max(j.ratio, ratio);
        }
    }
    const double limit =
        bounds.positions ? std::max(bounds.l2, std::ldexp(1.0, -24) * static_cast<double>(reach)) : bounds.l2;
    // Loud scores of operands that are rounded cost a baseline up to twice the limit, a difference of attentions that
    // nearly cancels four times; what is far beyond is a fault of its own.
    if (by.relative() > (parts > 1 ? 8 : 2) * limit && j.wrong.empty())
        j.wrong = fmt::format("the baseline is off by {:.3g} (relative L2): it is no measure", by.relative());
    if (all.relative() > limit && j.wrong.empty())
        j.wrong = fmt::format("o as a whole is off by {:.3g} (relative L2), {:.3g} is allowed", all.relative(), limit);
    return j;
}

Judgement judge_lse(const Array& got, const Array& exact, double scale, const Array* measured) {
    Judgement j;
    if (!comparable("lse", got, exact, j)) return j;
    if (measured && !comparable("the baseline's lse", *measured, exact, j)) return j;
    std::vector<double> errors(exact.values.size());
    for (std::size_t n = 0; measured && n < errors.size(); ++n) {
        const double off = std::fabs(measured->values[n] - exact.values[n] * scale);
        if (std::isfinite(off)) errors[n] = off;
    }
    if (measured) errors = nearby(errors, axis_from_end(exact, 1));
    // Scores are sums in float32: one that nearly cancels has the error of its largest kin, not of itself.
    double largest = 1;
    for (const double e : exact.values)
        if (std::isfinite(e)) largest = std::max(largest, std::fabs(e * scale));
    for (std::size_t n = 0; n < exact.values.size(); ++n) {
        const double e = exact.values[n] * scale, g = got.values[n];
        // Tensor cores add products of a score with fewer bits than a float has.
        const double once = (measured ? 2e-5 : 1e-5) * std::max(largest, std::fabs(e));
        const double bound = std::max(once, 2 * errors[n]);
        const bool fine = same_kind(g, e) && (!std::isfinite(e) || std::fabs(g - e) <= bound);
        if (!fine && j.wrong.empty()) j.wrong = differs("lse", exact, n, g, e);
    }
    return j;
}

Judgement judge_exact(const Array& got, const Array& exact, double tolerance) {
    Judgement j;
    if (!comparable("the output", got, exact, j)) return j;
    const std::size_t width =
        exact.shape.empty() ? 1 : std::max<std::size_t>(1, static_cast<std::size_t>(exact.shape.back()));
    for (std::size_t begin = 0; begin < exact.values.size(); begin += width) {
        double largest = 1;
        for (std::size_t n = begin; n < std::min(begin + width, exact.values.size()); ++n)
            if (std::isfinite(exact.values[n])) largest = std::max(largest, std::fabs(exact.values[n]));
        for (std::size_t n = begin; n < std::min(begin + width, exact.values.size()); ++n) {
            const double e = exact.values[n], g = got.values[n];
            const bool same = same_kind(g, e);
            const double ratio = !same              ? std::numeric_limits<double>::infinity()
                                 : std::isfinite(e) ? std::fabs(g - e) / (tolerance * largest)
                                                    : 0;
            if (ratio > 1 && j.wrong.empty()) j.wrong = differs("output", exact, n, g, e);
            j.ratio = std::max(j.ratio, ratio);
        }
    }
    return j;
}

} // namespace cubridge::runtime
