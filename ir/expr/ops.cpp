// The table of elementwise operators: one row an operator, its meaning in each arithmetic beside its CUDA text.
// SPDX-License-Identifier: Apache-2.0
#include "ir/expr/ops.h"
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

namespace cubridge::ir {

namespace {

using Int = std::int64_t;
using Real = double (*)(const double*);
using Float = float (*)(const float*);
using Integer = Int (*)(const Int*);

// Integers wrap, as PyTorch's do, instead of being undefined.
constexpr std::uint64_t u(Int x) {
    return static_cast<std::uint64_t>(x);
}
constexpr Int i(std::uint64_t x) {
    return static_cast<Int>(x);
}

template <class T> T modulo(T a, T b) {
    const T m = std::fmod(a, b);
    return m != 0 && (b < 0) != (m < 0) ? m + b : m;
}

// Python's floor division. The quotient goes through fmod, because floor(a / b) is one too large where a / b rounds up.
template <class T> T floor_division(T a, T b) {
    if (b == 0) return a / b;
    const T m = std::fmod(a, b);
    T quotient = (a - m) / b;
    if (m != 0 && (b < 0) != (m < 0)) quotient -= 1;
    if (quotient == 0) return std::copysign(T(0), a / b);
    const T whole = std::floor(quotient);
    return quotient - whole > T(0.5) ? whole + 1 : whole;
}

Int integer_floor_division(Int a, Int b) {
    if (b == 0) return 0;
    if (b == -1) return i(0 - u(a)); // the one quotient that overflows
    return a / b - (a % b != 0 && (a % b < 0) != (b < 0) ? 1 : 0);
}

Int integer_modulo(Int a, Int b) {
    if (b == 0 || b == -1) return 0;
    const Int m = a % b;
    return m != 0 && (m < 0) != (b < 0) ? m + b : m;
}

// PyTorch's answer to negative exponents: the reciprocal, truncated.
Int integer_power(Int base, Int exponent) {
    if (exponent < 0) {
        if (base == 1) return 1;
        if (base == -1) return exponent % 2 ? -1 : 1;
        return 0;
    }
    std::uint64_t result = 1, square = u(base);
    for (; exponent > 0; exponent >>= 1, square *= square)
        if (exponent & 1) result *= square;
    return i(result);
}

// PyTorch takes these exponents apart when they are numbers; it shows at -inf and, in float32, in the last bit.
template <class T> T power(T a, T b) {
    if (b == T(0.5)) return std::sqrt(a);
    if (b == T(-0.5)) return 1 / std::sqrt(a);
    if (b == T(2)) return a * a;
    if (b == T(3)) return a * a * a;
    if (b == T(-2)) return 1 / (a * a);
    return static_cast<T>(std::pow(static_cast<double>(a), static_cast<double>(b)));
}

double sigmoid(double x) {
    const double e = std::exp(-std::fabs(x)); // never overflows, and small results keep their relative precision
    return (x < 0 ? e : 1.0) / (1 + e);
}

// A float32 that is stored in 16 bits. `least`: exponent of the smallest normal number.
template <class T> T stored(T x, int fraction, int least, double largest) {
    const double v = static_cast<float>(x);
    if (!std::isfinite(v) || v == 0) return static_cast<T>(v);
    const double step = std::ldexp(1.0, std::max(std::ilogb(v), least) - fraction);
    const double nearest = std::nearbyint(v / step) * step;
    return static_cast<T>(std::fabs(nearest) > largest ? std::copysign(HUGE_VAL, v) : nearest);
}

enum Flag : unsigned { None = 0, RealIn = 1, BoolOut = 2 };

struct Text {
    const char* f32;
    const char* f64;
    double ulp;
    int cost;
};

constexpr OpInfo row(Op op, const char* name, const char* torch, int arity, unsigned flags, Real real, Float f32,
                     Integer integer, Text text) {
    return {op,       name,     torch,    arity,    (flags & RealIn) != 0, (flags & BoolOut) != 0, real, f32, integer,
            text.f32, text.f64, text.ulp, text.cost};
}

// The same arithmetic in both precisions: each is correctly rounded as it stands, or rounds where PyTorch rounds.
template <class F>
constexpr OpInfo exact(Op op, const char* name, const char* torch, int arity, unsigned flags, F f, Integer integer,
                       Text text) {
    return row(op, name, torch, arity, flags, f, f, integer, text);
}

template <class F> float rounded(const float* x) {
    const double wide = x[0];
    return static_cast<float>(F{}(&wide));
}

// A function whose float32 value is its float64 value, rounded once.
template <class F> constexpr OpInfo function(Op op, const char* name, const char* torch, F f, Text text) {
    return row(op, name, torch, 1, RealIn, f, rounded<F>, nullptr, text);
}

template <class F> constexpr OpInfo comparison(Op op, const char* name, const char* torch, F, const char* text) {
    return row(
        op, name, torch, 2, BoolOut, [](const double* x) { return F{}(x[0], x[1]) ? 1.0 : 0.0; },
        [](const float* x) { return F{}(x[0], x[1]) ? 1.0f : 0.0f; },
        [](const Int* x) { return F{}(x[0], x[1]) ? Int{1} : Int{0}; }, {text, text, 0, 1});
}

constexpr Integer same = [](const Int* x) { return x[0]; };

constexpr const char* kFloorDiv32 =
    "[](float a, float b) { if (b == 0.0f) return a / b; float m = fmodf(a, b), q = (a - m) / b; "
    "if (m != 0.0f && (b < 0.0f) != (m < 0.0f)) q -= 1.0f; if (q == 0.0f) return copysignf(0.0f, a / b); "
    "float w = floorf(q); return q - w > 0.5f ? w + 1.0f : w; }({0}, {1})";
constexpr const char* kFloorDiv64 =
    "[](double a, double b) { if (b == 0.0) return a / b; double m = fmod(a, b), q = (a - m) / b; "
    "if (m != 0.0 && (b < 0.0) != (m < 0.0)) q -= 1.0; if (q == 0.0) return copysign(0.0, a / b); "
    "double w = floor(q); return q - w > 0.5 ? w + 1.0 : w; }({0}, {1})";
constexpr const char* kMod32 = "[](float a, float b) { float m = fmodf(a, b); "
                               "return m != 0.0f && (b < 0.0f) != (m < 0.0f) ? m + b : m; }({0}, {1})";
constexpr const char* kMod64 = "[](double a, double b) { double m = fmod(a, b); "
                               "return m != 0.0 && (b < 0.0) != (m < 0.0) ? m + b : m; }({0}, {1})";
constexpr const char* kPow32 = "[](float a, float b) { return b == 0.5f ? sqrtf(a) : b == -0.5f ? 1.0f / sqrtf(a) "
                               ": b == 2.0f ? a * a : powf(a, b); }({0}, {1})";
constexpr const char* kPow64 = "[](double a, double b) { return b == 0.5 ? sqrt(a) : b == -0.5 ? 1.0 / sqrt(a) "
                               ": b == 2.0 ? a * a : pow(a, b); }({0}, {1})";
constexpr const char* kMin = "({0} < {1} || {0} != {0} ? {0} : {1})";
constexpr const char* kMax = "({0} > {1} || {0} != {0} ? {0} : {1})";
constexpr const char* kSigmoid32 =
    "[](float x) { float e = expf(-fabsf(x)); return (x < 0.0f ? e : 1.0f) / (1.0f + e); }({0})";
constexpr const char* kSigmoid64 =
    "[](double x) { double e = exp(-fabs(x)); return (x < 0.0 ? e : 1.0) / (1.0 + e); }({0})";

// Errors: CUDA C++ Programming Guide, "Mathematical Functions", the larger figure where editions differ; 0 is
// correctly rounded (or as exact as the definition above).
constexpr std::array<OpInfo, static_cast<std::size_t>(Op::Count)> kOps{{
    exact(
        Op::Add, "add", "torch.add", 2, None, [](const auto* x) { return x[0] + x[1]; },
        [](const Int* x) { return i(u(x[0]) + u(x[1])); }, {"({0} + {1})", "({0} + {1})", 0, 1}),
    exact(
        Op::Sub, "sub", "torch.sub", 2, None, [](const auto* x) { return x[0] - x[1]; },
        [](const Int* x) { return i(u(x[0]) - u(x[1])); }, {"({0} - {1})", "({0} - {1})", 0, 1}),
    exact(
        Op::Mul, "mul", "torch.mul", 2, None, [](const auto* x) { return x[0] * x[1]; },
        [](const Int* x) { return i(u(x[0]) * u(x[1])); }, {"({0} * {1})", "({0} * {1})", 0, 1}),
    exact(Op::Div, "div", "torch.div", 2, RealIn, [](const auto* x) { return x[0] / x[1]; }, nullptr,
          {"({0} / {1})", "({0} / {1})", 0, 10}),
    exact(
        Op::FloorDiv, "floordiv", "torch.floor_divide", 2, None,
        [](const auto* x) { return floor_division(x[0], x[1]); },
        [](const Int* x) { return integer_floor_division(x[0], x[1]); }, {kFloorDiv32, kFloorDiv64, 0, 45}),
    exact(
        Op::Mod, "mod", "torch.remainder", 2, None, [](const auto* x) { return modulo(x[0], x[1]); },
        [](const Int* x) { return integer_modulo(x[0], x[1]); }, {kMod32, kMod64, 0, 25}),
    exact(
        Op::Pow, "pow", "torch.pow", 2, None, [](const auto* x) { return power(x[0], x[1]); },
        [](const Int* x) { return integer_power(x[0], x[1]); }, {kPow32, kPow64, 9, 60}),
    exact(
        Op::Min, "min", "torch.minimum", 2, None,
        [](const auto* x) { return x[0] < x[1] || x[0] != x[0] ? x[0] : x[1]; },
        [](const Int* x) { return x[0] < x[1] ? x[0] : x[1]; }, {kMin, kMin, 0, 3}),
    exact(
        Op::Max, "max", "torch.maximum", 2, None,
        [](const auto* x) { return x[0] > x[1] || x[0] != x[0] ? x[0] : x[1]; },
        [](const Int* x) { return x[0] > x[1] ? x[0] : x[1]; }, {kMax, kMax, 0, 3}),
    row(
        Op::Atan2, "atan2", "torch.atan2", 2, RealIn, [](const double* x) { return std::atan2(x[0], x[1]); },
        [](const float* x) { return static_cast<float>(std::atan2(double{x[0]}, double{x[1]})); }, nullptr,
        {"atan2f({0}, {1})", "atan2({0}, {1})", 3, 30}),

    exact(
        Op::Neg, "neg", "torch.neg", 1, None, [](const auto* x) { return -x[0]; },
        [](const Int* x) { return i(0 - u(x[0])); }, {"(-({0}))", "(-({0}))", 0, 1}),
    exact(
        Op::Abs, "abs", "torch.abs", 1, None, [](const auto* x) { return std::fabs(x[0]); },
        [](const Int* x) { return x[0] < 0 ? i(0 - u(x[0])) : x[0]; }, {"fabsf({0})", "fabs({0})", 0, 1}),
    exact(Op::Sqrt, "sqrt", "torch.sqrt", 1, RealIn, [](const auto* x) { return std::sqrt(x[0]); }, nullptr,
          {"sqrtf({0})", "sqrt({0})", 0, 10}),
    exact(Op::Rsqrt, "rsqrt", "torch.rsqrt", 1, RealIn, [](const auto* x) { return 1 / std::sqrt(x[0]); }, nullptr,
          {"rsqrtf({0})", "(1.0 / sqrt({0}))", 2, 4}),
    function(Op::Exp, "exp", "torch.exp", [](const double* x) { return std::exp(x[0]); },
             {"expf({0})", "exp({0})", 2, 8}),
    function(Op::Exp2, "exp2", "torch.exp2", [](const double* x) { return std::exp2(x[0]); },
             {"exp2f({0})", "exp2({0})", 2, 6}),
    function(Op::Expm1, "expm1", "torch.expm1", [](const double* x) { return std::expm1(x[0]); },
             {"expm1f({0})", "expm1({0})", 1, 20}),
    function(Op::Log, "log", "torch.log", [](const double* x) { return std::log(x[0]); },
             {"logf({0})", "log({0})", 1, 18}),
    function(Op::Log2, "log2", "torch.log2", [](const double* x) { return std::log2(x[0]); },
             {"log2f({0})", "log2({0})", 1, 18}),
    function(Op::Log10, "log10", "torch.log10", [](const double* x) { return std::log10(x[0]); },
             {"log10f({0})", "log10({0})", 2, 20}),
    function(Op::Log1p, "log1p", "torch.log1p", [](const double* x) { return std::log1p(x[0]); },
             {"log1pf({0})", "log1p({0})", 1, 20}),
    function(Op::Tanh, "tanh", "torch.tanh", [](const double* x) { return std::tanh(x[0]); },
             {"tanhf({0})", "tanh({0})", 2, 20}),
    function(Op::Sigmoid, "sigmoid", "torch.sigmoid", [](const double* x) { return sigmoid(x[0]); },
             {kSigmoid32, kSigmoid64, 4, 20}),
    function(Op::Sin, "sin", "torch.sin", [](const double* x) { return std::sin(x[0]); },
             {"sinf({0})", "sin({0})", 2, 25}),
    function(Op::Cos, "cos", "torch.cos", [](const double* x) { return std::cos(x[0]); },
             {"cosf({0})", "cos({0})", 2, 25}),
    function(Op::Tan, "tan", "torch.tan", [](const double* x) { return std::tan(x[0]); },
             {"tanf({0})", "tan({0})", 4, 35}),
    function(Op::Atan, "atan", "torch.atan", [](const double* x) { return std::atan(x[0]); },
             {"atanf({0})", "atan({0})", 2, 20}),
    function(Op::Erf, "erf", "torch.erf", [](const double* x) { return std::erf(x[0]); },
             {"erff({0})", "erf({0})", 2, 20}),

    exact(Op::Floor, "floor", "torch.floor", 1, None, [](const auto* x) { return std::floor(x[0]); }, same,
          {"floorf({0})", "floor({0})", 0, 2}),
    exact(Op::Ceil, "ceil", "torch.ceil", 1, None, [](const auto* x) { return std::ceil(x[0]); }, same,
          {"ceilf({0})", "ceil({0})", 0, 2}),
    exact(Op::Trunc, "trunc", "torch.trunc", 1, None, [](const auto* x) { return std::trunc(x[0]); }, same,
          {"truncf({0})", "trunc({0})", 0, 2}),
    exact(Op::Round, "round", "torch.round", 1, None, [](const auto* x) { return std::nearbyint(x[0]); }, same,
          {"rintf({0})", "rint({0})", 0, 2}),

    comparison(
        Op::Lt, "lt", "torch.lt", [](auto a, auto b) { return a < b; }, "({0} < {1})"),
    comparison(
        Op::Le, "le", "torch.le", [](auto a, auto b) { return a <= b; }, "({0} <= {1})"),
    comparison(
        Op::Gt, "gt", "torch.gt", [](auto a, auto b) { return a > b; }, "({0} > {1})"),
    comparison(
        Op::Ge, "ge", "torch.ge", [](auto a, auto b) { return a >= b; }, "({0} >= {1})"),
    comparison(
        Op::Eq, "eq", "torch.eq", [](auto a, auto b) { return a == b; }, "({0} == {1})"),
    comparison(
        Op::Ne, "ne", "torch.ne", [](auto a, auto b) { return a != b; }, "({0} != {1})"),

    row(Op::And, "and", "torch.bitwise_and", 2, BoolOut, nullptr, nullptr, [](const Int* x) { return x[0] & x[1]; },
        {"({0} & {1})", "({0} & {1})", 0, 1}),
    row(Op::Or, "or", "torch.bitwise_or", 2, BoolOut, nullptr, nullptr, [](const Int* x) { return x[0] | x[1]; },
        {"({0} | {1})", "({0} | {1})", 0, 1}),
    row(Op::Xor, "xor", "torch.bitwise_xor", 2, BoolOut, nullptr, nullptr, [](const Int* x) { return x[0] ^ x[1]; },
        {"({0} ^ {1})", "({0} ^ {1})", 0, 1}),
    // The negation of a truth value. Of an integer dtype `~` is -1 - x, which is for those to say who know the dtype.
    row(Op::Not, "not", "torch.logical_not", 1, BoolOut, nullptr, nullptr,
        [](const Int* x) { return x[0] == 0 ? Int{1} : Int{0}; }, {"(!({0}))", "(!({0}))", 0, 1}),
    row(
        Op::Where, "where", "torch.where", 3, None, [](const double* x) { return x[0] != 0 ? x[1] : x[2]; }, nullptr,
        [](const Int* x) { return x[0] != 0 ? x[1] : x[2]; }, {"({0} ? {1} : {2})", "({0} ? {1} : {2})", 0, 1}),

    exact(Op::RoundF16, "round_f16", "", 1, RealIn, [](const auto* x) { return stored(x[0], 10, -14, 65504.0); },
          nullptr, {"cb_round_f16({0})", "cb_round_f16({0})", 0, 10}),
    exact(Op::RoundBF16, "round_bf16", "", 1, RealIn, [](const auto* x) { return stored(x[0], 7, -126, 0x1.fep127); },
          nullptr, {"cb_round_bf16({0})", "cb_round_bf16({0})", 0, 4}),
}};

constexpr bool in_order() {
    for (std::size_t at = 0; at < kOps.size(); ++at)
        if (kOps[at].op != static_cast<Op>(at)) return false;
    return true;
}
static_assert(in_order(), "a row of the table stands at its operator's number");

} // namespace

const OpInfo& info(Op op) {
    return kOps[static_cast<std::size_t>(op)];
}

std::span<const OpInfo> all_ops() {
    return kOps;
}

} // namespace cubridge::ir
