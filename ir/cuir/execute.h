// The executor: runs a program on small shapes and says what is wrong with its orchestration. Values are f64; order is
// decided by happens-before, so that one schedule shows a race that any schedule has. See docs/cuir.md.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/program.h"
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace cubridge::ir::cuir {

/// What is wrong, where, and what is missing: one sentence a person can act on.
struct Finding {
    std::string kind; ///< "race", "deadlock", "unwritten", "phase", "value", "limit", "static", "range", ...
    std::string role; ///< "math 1"; empty: of no role
    int line = 0;     ///< of the program's text
    int other = 0;    ///< the other statement's line; 0: none
    std::string message;
    std::string run{};         ///< the run that showed it: sizes, scalars, schedule; empty: no run did
    std::string text() const;  ///< "math 1, line 73, `statement`: ...", without the run
    std::string whole() const; ///< the same, the run in brackets behind it
};

/// A tensor in global memory, row major. Elements of inputs that the request doesn't own are NaN.
struct Memory {
    std::vector<std::int64_t> shape;
    std::vector<double> values;
    bool is_int = false;
};

/// One launch on shrunken constants.
struct Run {
    std::map<std::string, std::int64_t> sizes;     ///< B, Hq, Hk, Sq, Sk, D, Dv
    std::map<std::string, Memory> inputs;          ///< Q, K, V, x0, ...; scalars have rank 0
    std::map<std::string, std::int64_t> constants; ///< over the program's own: BM, BN, ST, ...
    int ctas = 2;
    enum class Policy { Late, Early, Random, Starve } policy = Policy::Late;
    std::string starved; ///< a role's name, for Starve
    std::uint64_t seed = 0;
    std::int64_t steps = 200'000; ///< more is a finding of kind "limit"
};

struct Outcome {
    std::vector<Finding> findings;         ///< empty: none; execution ends at the first
    std::map<std::string, Memory> outputs; ///< by parameter: Out, Lse; NaN-filled before, every element written once
    std::int64_t steps = 0;
};

/// Static checks: types, kinds, arrivals, barrier ids, registers, shared memory, literals, masked scores, votes, every
/// output written. At the program's own constants; no run.
std::vector<Finding> check(const Program& program);

/// Runs all kernels of a program. Deterministic; bounded by Run::steps. Never throws for a bad program.
Outcome execute(const Program& program, const Run& run);

/// What a program is to compute: outputs by parameter for the inputs of a run, as the specification's evaluator says.
using Reference = std::function<Result<std::map<std::string, Memory>>(const Run&)>;

struct Trial {
    std::vector<Run> runs;   ///< shapes, policies, seeds
    double tolerance = 1e-9; ///< relative to the largest value of the output; NaN and infinities in the same places
};

/// Runs all of a trial and compares; the first finding of each run. A difference is a finding of kind "value" that
/// names output, element, both values and the run.
std::vector<Finding> verify(const Program& program, const Trial& trial, const Reference& reference);

} // namespace cubridge::ir::cuir
