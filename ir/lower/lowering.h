// Lowering as margins, for those inside the room. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/expert.h"

namespace cubridge::ir::lower {

/// The target's file, and what was copied and printed. With `tolerant`, a statement without a rule gets an empty region
/// that is marked as edited; else it throws Failure. `target` was read from its own print.
Margin lower_margin(const Expert& expert, const cuir::Program& target, bool tolerant, Lowered& result);

} // namespace cubridge::ir::lower
