// What the compiler's report says against a kernel.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/gate.h"
#include <algorithm>
#include <fmt/format.h>

namespace cubridge::runtime {

Gate gate(const Artifact& artifact, const std::vector<std::string>& warpgroups,
          const std::vector<std::string>& remarks) {
    Gate out;
    const auto refuse = [&](std::string why) {
        out.refused = std::move(why);
        return out;
    };
    for (const auto& entry : artifact.plan.entries) {
        const auto it = std::find_if(artifact.entries.begin(), artifact.entries.end(),
                                     [&](const auto& e) { return e.name == entry.name; });
        if (it == artifact.entries.end()) return refuse(fmt::format("the compiler reports no entry {}", entry.name));
        const bool strict = std::find(warpgroups.begin(), warpgroups.end(), entry.name) != warpgroups.end();
        if (it->spill_stores + it->spill_loads != 0) {
            auto text = fmt::format("{} spills {} bytes of stores and {} of loads", entry.name, it->spill_stores,
                                    it->spill_loads);
            if (strict) return refuse(std::move(text));
            out.warnings.push_back(std::move(text));
        }
        if (strict && it->stack != 0)
            return refuse(fmt::format("{} has a stack frame of {} bytes", entry.name, it->stack));
    }
    if (!warpgroups.empty() && !remarks.empty()) return refuse("ptxas: " + remarks.front());
    return out;
}

} // namespace cubridge::runtime
