// What configurations are measured on. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/specification.h"
#include "runtime/check/case.h"

namespace cubridge::runtime {

/// The sizes of a measurement as a case of `check`. Nothing where the text's facts forbid them.
std::optional<Case> case_of(const ir::Specification& specification, const ir::Request& request, const ir::Shape& shape);

/// The operands of a launch, in the order of the specification's inputs; nothing in place of q, k and v and of what is
/// bound, static or absent. Integers of positions are four runs in ascending order, others a quarter of the keys; tame:
/// all are 0. Errors: "memory" where they are too many for the host.
ir::Result<std::vector<ir::Argument>> typical_operands(const ir::Specification& specification,
                                                       const ir::Request& request, const Case& c, bool tame);

/// Whether the text refuses typical integers (an index out of range): asked at small sizes, on the CPU.
bool needs_tame(const ir::Specification& specification, const ir::Request& request, const Case& c);

/// Normal numbers in a type of 16 bits, a period of about a million elements.
std::vector<std::uint16_t> normal_elements(ir::DType type, std::uint64_t seed);

} // namespace cubridge::runtime
