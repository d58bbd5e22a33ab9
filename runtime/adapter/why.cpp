// The words for reasons.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/why.h"
#include <array>

namespace cubridge::runtime::why {

std::string names(std::uint32_t bits) {
    static constexpr std::array<const char*, 16> kNames = {
        "ARCH",  "DTYPE",      "HEAD_DIM",    "LAYOUT", "PHASE",      "ALIGNMENT", "LSE",    "VARIANT",
        "HEADS", "NOT_STORED", "NO_COMPILER", "SEALED", "UNVERIFIED", "FAILED",    "BUDGET", "MEMORY"};
    std::string out;
    for (std::size_t k = 0; k < kNames.size(); ++k)
        if ((bits >> k & 1) != 0) (out += out.empty() ? "" : ",") += kNames[k];
    return out;
}

} // namespace cubridge::runtime::why
