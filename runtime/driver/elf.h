// Whether a cubin is whole. The driver is given no size and would read past the end of a torn one.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <cstddef>
#include <span>

namespace cubridge::runtime {

/// All that a 64-bit ELF file's header, tables and sections point to lies inside `image`. Nothing is judged beyond
/// that: what a cubin may hold is the driver's business.
bool is_whole_elf(std::span<const std::byte> image);

} // namespace cubridge::runtime
