// The device functions that every generic kernel begins with. Private to ir/generic. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "cubridge/ir/dtype.h"
#include <string>

namespace cubridge::ir::generic {

/// CUDA text: element conversions, integer division, reductions of a block. Needs `cb_real`, CB_THREADS and cb_args.
const char* prelude();
/// "bf16": cb_get_bf16(const void*, long long) reads an element, cb_put_bf16(void*, long long, cb_real) writes one.
/// Integers are read as long long, bool as bool, float16 and narrower as float, float32 and float64 as themselves.
std::string element(DType t);

} // namespace cubridge::ir::generic
