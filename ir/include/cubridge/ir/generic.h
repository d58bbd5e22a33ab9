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

/// The baseline that errors are measured against: the float64 build of what the Variant means, in which everything that
/// a kernel on tensor cores must store in the type of k and v is rounded to it once: the weights, and q, k, v where the
/// text computes them. Of a softmax's weights it is the largest error that rounding them may add up to, since a kernel
/// may round them relative to any number. `request` is the kernel's; the baseline reads and writes float64 tensors, and
/// its output is not rounded. Any thread. Errors: as above; "unsupported" where there is no Variant, or k and v are
/// neither float16 nor bfloat16.
Result<GenericKernel> baseline_kernel(const Specification& specification, const Request& request);

} // namespace cubridge::ir
