// How a computed tensor is held against a recorded one. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

namespace cubridge::ir::record {

constexpr double kTolerance = 1e-12;

inline bool close(double a, double b) {
    if (a != a || b != b) return a != a && b != b;
    return a == b || std::fabs(a - b) <= kTolerance * std::fmax(1, std::fabs(a));
}

inline std::string text(const std::vector<std::int64_t>& shape) {
    std::string s = "[";
    for (const auto n : shape) s += (s.size() > 1 ? ", " : "") + std::to_string(n);
    return s + "]";
}

/// Nothing, or what differs first: dtype, shape, a place of NaN or inf, a value. Integers and booleans exactly.
inline std::string difference(DType type, const std::vector<std::int64_t>& shape, const std::vector<double>& values,
                              DType found_type, const std::vector<std::int64_t>& found_shape,
                              const std::vector<double>& found) {
    if (type != found_type) return std::string(torch_name(type)) + " is expected, this is " + torch_name(found_type);
    if (shape != found_shape) return "the shape " + text(shape) + " is expected, this is " + text(found_shape);
    for (std::size_t k = 0; k < values.size(); ++k) {
        const double a = values[k], b = found[k];
        if (is_float(type) ? close(a, b) : a == b) continue;
        char line[120];
        std::snprintf(line, sizeof line, "element %zu of %s: %.17g is expected, this is %.17g", k, torch_name(type), a,
                      b);
        return line;
    }
    return "";
}

} // namespace cubridge::ir::record
