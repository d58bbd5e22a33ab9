// The plan of cases of a specification. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/check.h"
#include "runtime/check/case.h"

namespace cubridge::runtime {

struct CheckPlan {
    std::vector<Unit> units;
    std::vector<Case> cases;
    std::vector<std::string> notes; ///< what could not be varied, and why
};

/// Pairwise over kernels, lengths, batch, layouts and contents; four cases at the real head dims. Deterministic.
/// Errors: "domain" where no sizes satisfy what the text demands.
ir::Result<CheckPlan> make_check_plan(const ir::Specification& specification, const ir::Request& request,
                                      const CheckOptions& options);

} // namespace cubridge::runtime
