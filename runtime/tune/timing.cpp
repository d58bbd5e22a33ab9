// SPDX-License-Identifier: Apache-2.0
#include "runtime/tune/timing.h"
#include "runtime/check/rounding.h"
#include <algorithm>
#include <cmath>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

double median(std::vector<double> x) {
    std::sort(x.begin(), x.end());
    const auto n = x.size();
    return n % 2 == 1 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

double number(std::uint16_t x, ir::DType type) {
    return decode(reinterpret_cast<const std::byte*>(&x), type);
}

} // namespace

Measurer::Timing timing_of(const std::vector<std::vector<float>>& blocks) {
    std::vector<double> medians;
    Measurer::Timing out;
    for (const auto& block : blocks) {
        const auto skipped = static_cast<std::ptrdiff_t>(block.size() / 3);
        const std::vector<double> counted(block.begin() + skipped, block.end());
        if (counted.empty()) continue;
        out.launches += static_cast<int>(counted.size());
        medians.push_back(1000 * median(counted));
    }
    if (medians.empty()) return out;
    out.us = median(medians);
    const auto [least, most] = std::minmax_element(medians.begin(), medians.end());
    out.spread = out.us > 0 ? (*most - *least) / out.us : 0;
    return out;
}

std::string differs(std::span<const std::uint16_t> one, std::span<const std::uint16_t> other, ir::DType type) {
    const double limit = type == ir::DType::F16 ? 2e-3 : 1e-2; // of check, for either
    double error = 0, size = 0;
    for (std::size_t k = 0; k < one.size(); ++k) {
        if (one[k] == other[k]) {
            if (const double x = number(one[k], type); std::isfinite(x)) size += x * x;
            continue;
        }
        const double a = number(one[k], type), b = number(other[k], type);
        if (std::isnan(a) && std::isnan(b)) continue;
        if (!std::isfinite(a) || !std::isfinite(b))
            return fmt::format("element {} of its output is {}, that of the first configuration {}", k, b, a);
        error += (a - b) * (a - b);
        size += a * a;
    }
    if (error <= 4 * limit * limit * size) return "";
    return fmt::format("its output differs from the first configuration's by {:.2g} of its size",
                       std::sqrt(error / std::max(size, 1e-300)));
}

} // namespace cubridge::runtime
