// Running one kernel that is compiled already. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/check.h"
#include "runtime/check/kernels.h"

namespace cubridge::runtime {

/// What would come of a plan and of compiling: cases, all of unit 0, which is `request` as it is, and its kernels.
struct Given {
    std::vector<Case> cases;
    UnitKernels kernels;
};

/// check() of what is given; needs `options.driver`, and no compiler.
CheckReport check_given(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
                        const CheckOptions& options, Given given);

} // namespace cubridge::runtime
