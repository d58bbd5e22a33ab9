// Room in a channel. SPDX-License-Identifier: Apache-2.0
#include "ir/cuir/barriers.h"
#include <algorithm>

namespace cubridge::ir::cuir {

std::int64_t Channel::room() const {
    const auto published = static_cast<std::int64_t>(queue.size());
    if (taking < takers) return entries - published; // who has not taken yet still has all before it
    std::int64_t least = published;
    for (const auto p : position)
        if (p >= 0) least = std::min(least, p);
    return entries - (published - least);
}

} // namespace cubridge::ir::cuir
