// Calls in the CUDA of a region that move data or make threads agree. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "ir/lower/rules.h"

namespace cubridge::ir::lower {

/// Lines without comments and needless blanks, as one text.
std::string squeezed(const Lines& lines);
/// "wait_copies<0>()", "bar_sync(everyone,32*W)", "items.take(more,b)": the moving and synchronising calls of a region
/// with their arguments, sorted.
std::vector<std::string> calls_in(const Lines& lines);
/// Whether one of calls_in() may meet another agent or the copy engine: by shared memory, a barrier, a channel. Votes,
/// shuffles and what stays in a warp's registers do not.
bool meets_others(const std::string& call);

} // namespace cubridge::ir::lower
