// The verdict on numbers: see "Numbers a reader can trust" in docs/architecture.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include <string>

namespace cubridge::runtime {

struct Judgement {
    double ratio = 0;  ///< largest error over that of the baseline; at most 2 passes
    std::string wrong; ///< the first thing that is, with its place; empty: nothing
};

/// A kernel's output against exact values, row by row (the last axis). An element may be off by the larger of twice the
/// baseline's error and one ulp of the row's largest value. The baseline's error is the largest of `baseline`, which is
/// not rounded, and half an ulp more for rounding it, in this row and the 32 before and after it under the same leading
/// axes: errors are random, and those of one row alone may be small by chance. Without `baseline` it is that of the
/// exact row rounded once; float32 has besides what rounding scores of positions up to `reach` costs. The relative L2
/// error of all is bounded too (2e-3, 1e-2, 1e-5 for float16, bfloat16, float32). NaN and infinities must be where the
/// reference has them, -inf as -inf.
/// A baseline that is itself off by more than twice that is no measure; `parts` > 1, attentions whose difference may
/// cancel what their roundings don't: eight times.
Judgement judge_output(const ir::Array& got, const ir::Array& exact, ir::DType type, std::int64_t reach,
                       const ir::Array* baseline = nullptr, std::size_t parts = 1);
/// A log-sum-exp, float32: 1e-5 of the value or of 1; with a `baseline`, whose kernel adds scores
/// in tensor cores, 2e-5, or twice the error of `baseline`, which is in the request's base,
/// in the neighbourhood. `scale` makes the reference's natural logarithm the request's.
Judgement judge_lse(const ir::Array& got, const ir::Array& exact, double scale, const ir::Array* baseline = nullptr);
/// Two float64 computations: `tolerance` relative to the larger of 1 and the row's largest value.
Judgement judge_exact(const ir::Array& got, const ir::Array& exact, double tolerance);

} // namespace cubridge::runtime
