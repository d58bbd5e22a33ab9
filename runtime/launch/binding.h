// Binding: how the operands of one specification meet those of a kernel that may have been made from another text of
// the same subject. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/adapter.h"

namespace cubridge::runtime {

/// A value; immutable once made.
struct Binding {
    ir::launch::Plan plan;   ///< the specification's own operands and conditions: what a launch checks
    std::vector<int> source; ///< for each operand of the artifact, the own one that fills it
};

using Printer = std::function<ir::Result<ir::GenericKernel>(const ir::Specification&, const ir::Request&)>;

/// Nothing where the artifact may not serve the specification: it was made from a text that means this subject under
/// narrower conditions, wants more of an operand, or reads one that this text has not. Prints the specification's own
/// kernel unless the artifact was made from the same text. An empty printer is ir::generic_kernel.
std::optional<Binding> binding_of(const Artifact& artifact, const ir::Specification& specification,
                                  const ir::Request& request, const Printer& printer = {});

} // namespace cubridge::runtime
