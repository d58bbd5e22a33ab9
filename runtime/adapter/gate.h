// The compiler's report as a judge: what it made of a kernel may be another kernel.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/artifact.h"

namespace cubridge::runtime {

struct Gate {
    std::string refused; ///< why the compiled kernel is not used; empty: it is
    std::vector<std::string> warnings;
};

/// Every entry of the plan is in the cubin. `warpgroups` are kernels whose registers are given out by hand and whose
/// products run beside other work: a stack frame, spills, and whatever ptxas remarks on them, are refused. Spills of
/// others are said: what they cost is measured, not guessed.
Gate gate(const Artifact& artifact, const std::vector<std::string>& warpgroups,
          const std::vector<std::string>& remarks);

} // namespace cubridge::runtime
