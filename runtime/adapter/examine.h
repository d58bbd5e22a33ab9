// Having a kernel run before it serves. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/lock.h"
#include "cubridge/runtime/artifact.h"
#include "runtime/adapter/references.h"

namespace cubridge::runtime {

struct Examined {
    std::string wrong;          ///< of a kernel that ran: what the verifier says; empty: it passed, or did not run
    std::optional<Fault> fault; ///< why it did not run
};

/// Waits for `references`, has `verifier` run the kernel, and notes in the artifact what it has passed.
Examined examine(Artifact& artifact, const ir::Specification& specification, const ir::Request& request,
                 References& references, Verifier& verifier, cache::Deadline deadline);

} // namespace cubridge::runtime
