// The expert kernels that come with the library: each one .cu with its CuIR in the margin.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <span>
#include <string_view>

namespace cubridge::ir::experts {

struct Expert {
    std::string_view name; ///< "prefill_sm80"
    std::string_view text; ///< the .cu; lives as long as the program
};
std::span<const Expert> all();

} // namespace cubridge::ir::experts
