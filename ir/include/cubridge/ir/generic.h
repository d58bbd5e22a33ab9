// The generic kernel of a specification: right for any variant, slow. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/launch.h"
#include "cubridge/ir/specification.h"

namespace cubridge::ir {

struct GenericKernel {
    std::string cuda;  ///< self-contained: includes nothing
    launch::Plan plan; ///< how to launch it; its `operands` are what cubridge_operand_name() lists, and bound scalars
};

/// Prints it for a request. `f64` gives the reference build: everything in double, for checks. Errors: "domain" where
/// the request contradicts what the text demands (a size, a divisibility), "unsupported" where the request asks for
/// what the kernel has not (a layout, an LSE of a text without one, empty rows of a text that is no attention).
Result<GenericKernel> generic_kernel(const Specification& specification, const Request& request, bool f64 = false);

} // namespace cubridge::ir
