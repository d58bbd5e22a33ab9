// The one table of elementwise operators. The tensor evaluator, the expression evaluator, the printer of CUDA and the
// documentation read it; none of them owns an operator.
// Source of the semantics: PyTorch's documentation of the function that `torch` names. The last two are no text's: they
// say where a kernel rounds.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstdint>
#include <span>

namespace cubridge::ir {

enum class Op : std::uint8_t {
    Add,
    Sub,
    Mul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Min,
    Max,
    Atan2,
    Neg,
    Abs,
    Sqrt,
    Rsqrt,
    Exp,
    Exp2,
    Expm1,
    Log,
    Log2,
    Log10,
    Log1p,
    Tanh,
    Sigmoid,
    Sin,
    Cos,
    Tan,
    Atan,
    Erf,
    Floor,
    Ceil,
    Trunc,
    Round,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
    Xor,
    Not,
    Where,    ///< condition, value, other
    RoundF16, ///< through float32 to the nearest float16, ties to even: what a kernel stores
    RoundBF16,
    Count
};

/// Values are doubles throughout; integers and booleans are exact in them (an Int beyond 2^53 is an error of the
/// caller).
struct OpInfo {
    Op op;
    const char* name;  ///< lower case, as canonical texts print it: "tanh"
    const char* torch; ///< the torch function that it is, for documentation; empty: no text and no program names it
    int arity;
    bool real_in;  ///< integers are converted to floating point first (exp of an int tensor)
    bool bool_out; ///< comparisons and logic
    double (*real)(
        const double* x);         ///< in float64. Min and Max propagate NaN as torch does; Mod, FloorDiv are Python's
    float (*f32)(const float* x); ///< rounded once, as a float32 torch kernel would; null for logic and Where
    std::int64_t (*integer)(const std::int64_t* x); ///< null where the result is not an integer. A divisor of 0 gives 0
    const char* cuda_f32; ///< CUDA for floats, {0} {1} {2} stand for the operands; fast-math is never assumed
    const char* cuda_f64;
    double ulp; ///< largest error of the CUDA text in units of the last place (float), from the CUDA programming guide
    int cost;   ///< issue slots of a float operation, roughly; a call of the special-function unit counts 4
};

const OpInfo& info(Op op);
std::span<const OpInfo> all_ops();

} // namespace cubridge::ir
