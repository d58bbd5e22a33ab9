// The kernels of a plan, compiled side by side. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/adapter.h"
#include "runtime/check/plan.h"

namespace cubridge::runtime {

/// The kernel of one unit, and the float64 build of the same: the reference above what the CPU can do.
struct UnitKernels {
    std::vector<std::byte> cubin, cubin64;
    ir::launch::Plan plan, plan64;
    bool by_rules = false;          ///< else the generic kernel
    std::string reason;             ///< why it is the generic one
    std::optional<ir::Error> error; ///< why there is none
};

/// The unit whose dtypes are all float64: what the reference build reads and writes.
Unit in_float64(const Unit& unit);

/// Makes and compiles both builds of every unit on `options.threads` threads, the first through adapt().
std::vector<UnitKernels> make_kernels(const std::shared_ptr<const ir::Specification>& specification,
                                      const std::vector<Unit>& units, const std::string& arch,
                                      const CheckOptions& options);

} // namespace cubridge::runtime
