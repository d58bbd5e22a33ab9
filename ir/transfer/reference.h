// What a specification says that a program of it computes, and the runs on which the two are compared: at load, by
// `cubridge exec`, in tests. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"
#include "ir/cuir/execute.h"

namespace cubridge::ir::transfer {

/// Out, and Lse where the request asks for one, by the specification's own evaluator in
/// float64. Borrows the specification. Request::lse gives the base, Request::empty_rows what rows without keys are.
/// Errors: those of Specification::evaluate.
cuir::Reference reference_of(const Specification& specification, const Request& request = {});

/// Small shapes under few schedules: query and key tiles around every edge of tiles of 2 rows an agent and 3 keys,
/// groups, rows without keys. Inputs satisfy the specification's facts. Errors: "domain" where no sizes do.
Result<cuir::Trial> trial_of(const cuir::Program& program, const Specification& specification, std::uint64_t seed);

} // namespace cubridge::ir::transfer
