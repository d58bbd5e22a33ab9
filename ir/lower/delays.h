// The same CUDA with delays: races that are won by luck are lost by a warp that comes late. SPDX-License-Identifier:
// Apache-2.0
#pragma once
#include "cubridge/ir/error.h"
#include <string>
#include <string_view>

namespace cubridge::ir::lower {

/// `__constant__ unsigned` of a text with delays: which places and warps come late. A launch reads what the host wrote.
inline constexpr char kDelaySeed[] = "cb_delay_seed";

/// A file in margin form with `cb_delay(k);` where each role begins, where each work item was drawn, and before each
/// region in which agents may meet (meets_others()); its margin stays as it is. Whole warps wait, one place of one warp
/// often, others seldom, most never, up to some microseconds. Not in maps, whose threads go their own ways. Errors:
/// those of reading the margin; "margin" where there is no such place, or there are delays.
Result<std::string> with_delays(std::string_view cuda);

} // namespace cubridge::ir::lower
