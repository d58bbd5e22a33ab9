// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/examine.h"
#include <algorithm>

namespace cubridge::runtime {

Examined examine(Artifact& artifact, const ir::Specification& specification, const ir::Request& request,
                 References& references, Verifier& verifier, cache::Deadline deadline) {
    Examined out;
    if (auto done = references.ready(); !done) {
        out.fault = done.fault();
        return out;
    }
    VerifyJob job;
    job.specification = {std::shared_ptr<void>(), &specification};
    job.request = request;
    job.kernel = {artifact.cubin, artifact.plan};
    const auto order = specification.order();
    for (std::size_t k = 0; k < artifact.places.size(); ++k) // another text of the subject has other names
        if (const int place = artifact.places[k]; place >= 0 && static_cast<std::size_t>(place) < order.size())
            job.kernel.plan.operands[k].name =
                specification.inputs()[static_cast<std::size_t>(order[static_cast<std::size_t>(place)])].name;
    job.exact = references.exact();
    if (artifact.build.made_by != "generic") job.baseline = references.baseline();
    job.program = artifact.program;
    if (deadline != cache::Deadline::max()) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        job.deadline = std::clamp(left, std::chrono::milliseconds(1), job.deadline);
    }
    const auto result = verifier.verify(job);
    if (!result) {
        out.fault = result.fault();
    } else if (!result->passed) {
        out.wrong = result->record();
    } else {
        artifact.verification.level = Verified::Gpu;
        artifact.verification.error_ratio = result->ratio;
        auto& record = artifact.verification.record;
        for (const std::string unseen : {"; not run on a GPU", "compiled, not run"})
            if (const auto at = record.find(unseen); at != record.npos) record.erase(at, unseen.size());
        record += (record.empty() ? "" : "; ") + result->record();
    }
    return out;
}

} // namespace cubridge::runtime
