// Why the printer refused a request, as bits that a program can act on.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/specification.h"

namespace cubridge::runtime {

/// Finds the field of the request without which it would have been accepted. Prints a few times.

std::uint32_t reasons_of_refusal(const ir::Specification& specification, const ir::Request& request,
                                 const ir::Error& error);

} // namespace cubridge::runtime
