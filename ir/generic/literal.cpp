// SPDX-License-Identifier: Apache-2.0
#include "ir/generic/literal.h"
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

namespace cubridge::ir::generic {
namespace {

template <class T> std::string decimal(T v) {
    std::array<char, 48> buffer{};
    std::string s(buffer.data(), std::to_chars(buffer.data(), buffer.data() + buffer.size(), v).ptr);
    if (s.find_first_of(".e") == s.npos) s += ".0";
    return s;
}

} // namespace

std::string integer_literal(std::int64_t v) {
    if (v == std::numeric_limits<std::int64_t>::min()) return "(-9223372036854775807ll - 1)";
    return v < 0 ? "(" + std::to_string(v) + "ll)" : std::to_string(v) + "ll";
}

std::string real_literal(double v) {
    if (std::isnan(v)) return "cb_nan()";
    if (std::isinf(v)) return v > 0 ? "cb_inf()" : "(-cb_inf())";
    return "cb_real(" + decimal(v) + ")";
}

std::string float_literal(float v) {
    if (std::isnan(v)) return "(float)cb_nan()";
    if (std::isinf(v)) return v > 0 ? "(float)cb_inf()" : "(-(float)cb_inf())";
    return v < 0 ? "(" + decimal(v) + "f)" : decimal(v) + "f";
}

std::string literal(Expr e) {
    switch (e->type) {
    case Type::Bool: return e->integer != 0 ? "true" : "false";
    case Type::Int: return integer_literal(e->integer);
    case Type::F32: return float_literal(static_cast<float>(e->real));
    case Type::Real: break;
    }
    return real_literal(e->real);
}

} // namespace cubridge::ir::generic
