// May a stored kernel serve this text, and where are its operands?
// SPDX-License-Identifier: Apache-2.0
#include "runtime/launch/binding.h"
#include <algorithm>
#include <numeric>

namespace cubridge::runtime {
namespace {

using ir::launch::Code;

/// The code with its operands renumbered.
Code renumbered(Code code, const std::vector<int>& source) {
    for (auto& step : code.steps) {
        if (step.what != Code::Do::PushOperand) continue;
        const auto operand = static_cast<std::size_t>(step.value / 4);
        if (operand < source.size()) step.value = source[operand] * 4 + step.value % 4;
    }
    return code;
}

bool same_demands(const ir::launch::Operand& theirs, const ir::launch::Operand& own, const std::vector<int>& source) {
    if (theirs.dtype != own.dtype || theirs.rank != own.rank) return false;
    return std::equal(theirs.least.begin(), theirs.least.end(), own.least.begin(), own.least.end(),
                      [&](const Code& a, const Code& b) { return renumbered(a, source) == b; });
}

} // namespace

std::optional<Binding> binding_of(const Artifact& artifact, const ir::Specification& specification,
                                  const ir::Request& request, const Printer& printer) {
    Binding out;
    // The generic kernel takes operands in the order of its own text; others in that of the subject.
    if (artifact.specification == source_id(specification) && artifact.build.made_by == "generic") {
        out.plan = artifact.plan;
        out.source.resize(artifact.plan.operands.size());
        std::iota(out.source.begin(), out.source.end(), 0);
        return out;
    }
    auto own = printer ? printer(specification, request) : ir::generic_kernel(specification, request);
    if (!own) return std::nullopt;
    const auto places = places_of(specification, own->plan);
    for (const int place : artifact.places) {
        const auto it = std::find(places.begin(), places.end(), place);
        if (place < 0 || it == places.end()) return std::nullopt;
        out.source.push_back(static_cast<int>(it - places.begin()));
    }
    for (std::size_t k = 0; k < out.source.size(); ++k)
        if (!same_demands(artifact.plan.operands[k], own->plan.operands[static_cast<std::size_t>(out.source[k])],
                          out.source))
            return std::nullopt;
    for (const auto& condition : artifact.plan.conditions) {
        const bool known = std::any_of(own->plan.conditions.begin(), own->plan.conditions.end(), [&](const auto& c) {
            return c.kind == condition.kind && c.left == renumbered(condition.left, out.source) &&
                   c.right == renumbered(condition.right, out.source);
        });
        if (!known) return std::nullopt;
    }
    out.plan = std::move(own->plan);
    return out;
}

} // namespace cubridge::runtime
