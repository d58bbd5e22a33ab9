// Inside the room: one launch of compiled code. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/cuir/machine.h"

namespace cubridge::ir::cuir {

Outcome execute(const Code& code, const Run& run);

} // namespace cubridge::ir::cuir
