// SPDX-License-Identifier: Apache-2.0
#include "runtime/adapter/examine.h"
#include <algorithm>
#include <ctime>

namespace cubridge::runtime {
namespace {

/// The record without what this run is in place of: what a GPU said before, and that none had its say.
std::string without_gpu(const std::string& record) {
    std::string out;
    for (std::size_t from = 0; from < record.size();) {
        const auto end = std::min(record.find("; ", from), record.size());
        const auto part = record.substr(from, end - from);
        from = end + 2;
        if (part.starts_with("gpu: ") || part == "not run on a GPU" || part == "compiled, not run") continue;
        out += (out.empty() ? "" : "; ") + part;
    }
    return out;
}

} // namespace

Examined examine(Artifact& artifact, const ir::Specification& specification, const ir::Request& request,
                 References& references, Verifier& verifier, cache::Deadline deadline, std::uint64_t seed) {
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
    job.seed = seed;
    if (deadline != cache::Deadline::max()) {
        const auto left =
            std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
        job.deadline = std::clamp(left, std::chrono::milliseconds(1), job.deadline);
    }
    const auto result = verifier.verify(job);
    if (!result) {
        out.fault = result.fault();
        return out;
    }
    out.seed = result->seed;
    if (!result->passed) {
        out.wrong = result->record();
        return out;
    }
    auto& v = artifact.verification;
    v.level = Verified::Gpu;
    v.error_ratio = result->ratio;
    v.record = without_gpu(v.record);
    v.record += (v.record.empty() ? "" : "; ") + result->record();
    v.gpu = {kVerification,
             result->cases,
             result->against_text,
             result->seed,
             result->device,
             result->driver,
             static_cast<std::int64_t>(std::time(nullptr))};
    return out;
}

} // namespace cubridge::runtime
