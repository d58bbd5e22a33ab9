// Having a kernel run before it serves. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/lock.h"
#include "cubridge/runtime/artifact.h"
#include "runtime/adapter/references.h"

namespace cubridge::runtime {

struct Examined {
    std::string wrong;          ///< of a kernel that ran: what the verifier says; empty: it passed, or did not run
    std::optional<Fault> fault; ///< why it did not run
    std::uint64_t seed = 0;     ///< of what ran
};

/// Waits for `references`, has `verifier` run the kernel, and notes in the artifact what it has passed: in place of
/// what it passed before. `seed` 0: a fresh one.
Examined examine(Artifact& artifact, const ir::Specification& specification, const ir::Request& request,
                 References& references, Verifier& verifier, cache::Deadline deadline, std::uint64_t seed = 0);

} // namespace cubridge::runtime
