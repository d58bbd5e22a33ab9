// Numbers as a kernel's memory holds them. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include <cstddef>
#include <cstdint>

namespace cubridge::runtime {

/// The nearest value of the type, ties to even; integers are truncated to their width.
double rounded(double value, ir::DType type);
/// Writes one element of size_in_bytes(type) bytes; the value is rounded.
void encode(double value, ir::DType type, std::byte* to);
double decode(const std::byte* from, ir::DType type);
/// The distance of two neighbours at `value`: 2^-10 of its power of two for float16. 0 for integers.
double ulp(double value, ir::DType type);

} // namespace cubridge::runtime
