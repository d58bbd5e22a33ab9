// The kernels of a plan, compiled side by side. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/verifier.h"
#include "runtime/check/plan.h"

namespace cubridge::runtime {

/// The kernel of one unit and what it is measured by.
struct UnitKernels {
    Built kernel;
    Built exact;                          ///< the float64 build: the reference above what the CPU can do
    std::optional<Built> baseline;        ///< of a kernel by rules with 16-bit outputs: ir::baseline_kernel()
    std::optional<Built> delayed;         ///< by rules, if asked for: the kernel with delays (ir/lower/delays.h)
    std::string not_delayed;              ///< why there is none
    bool by_rules = false;                ///< else the generic kernel
    std::string reason;                   ///< why it is the generic one
    std::string expert;                   ///< by rules: whose it is
    std::vector<std::string> passed_over; ///< by rules: why not of an expert that comes before
    std::optional<ir::Error> error;       ///< why there is none
};

/// The unit whose dtypes are all float64: what the exact build and the baseline read and write.
Unit in_float64(const Unit& unit);

/// Makes and compiles all builds of every unit on `options.threads` threads, the kernel through adapt().
std::vector<UnitKernels> make_kernels(const std::shared_ptr<const ir::Specification>& specification,
                                      const std::vector<Unit>& units, const std::string& arch,
                                      const CheckOptions& options);

} // namespace cubridge::runtime
