// From times of single launches to a verdict. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/runtime/tune.h"

namespace cubridge::runtime {

/// Of one kernel: milliseconds of each launch of each block. The first third of a block is not counted: the chip comes
/// from another kernel.
Measurer::Timing timing_of(const std::vector<std::vector<float>>& blocks);

/// What two outputs of one shape differ by, as a text; empty: by no more than two right kernels may.
std::string differs(std::span<const std::uint16_t> one, std::span<const std::uint16_t> other, ir::DType type);

} // namespace cubridge::runtime
