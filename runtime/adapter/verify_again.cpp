// A stored kernel, run again from what its record holds. SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/driver.h"
#include "runtime/adapter/examine.h"
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

Rerun not_run(Rerun out, std::string why, std::string hint = {}) {
    out.verdict = Rerun::Verdict::NotRun;
    out.why = std::move(why);
    out.hint = std::move(hint);
    return out;
}

Rerun wrong(Rerun out, cache::Store& store, const cache::Digest& id, std::string why) {
    out.verdict = Rerun::Verdict::Wrong;
    if (const auto aside = store.quarantine(id, why); !aside)
        out.hint = fmt::format("it could not be set aside: {} {}", cache::name(aside.code), aside.reason);
    out.why = std::move(why);
    return out;
}

Rerun run(cache::Store& store, const cache::Digest& id, const std::shared_ptr<Compiler>& compiler, Verifier& verifier,
          std::uint64_t seed) {
    Rerun out;
    const auto record = store.load(id);
    if (!record) return not_run(out, "it is not in the store, or can't be read");
    out.arch = record->arch;
    auto artifact = Artifact::from_record(*record);
    if (!artifact) return wrong(out, store, id, artifact.error().message);
    const auto gpu = verifier.arch();
    if (!gpu) return not_run(out, gpu.fault().message, gpu.fault().hint);
    if (!gpu->empty() && !runs_on(artifact->arch, *gpu)) {
        out.verdict = Rerun::Verdict::Elsewhere;
        out.why = fmt::format("it is for {}, and the GPU is {}", artifact->arch, *gpu);
        return out;
    }
    if (artifact->plan.abi != ir::abi::kKernelAbi)
        return not_run(out, fmt::format("it reads argument block {}, and this library writes {}", artifact->plan.abi,
                                        ir::abi::kKernelAbi));
    if (!artifact->asked)
        return not_run(out, "its record does not hold its text: an older library made it",
                       "the engine and `adapt --verify` run it with the text of whoever asks");
    ir::ParseOptions how;
    how.heads = artifact->asked->heads;
    const auto specification = ir::Specification::parse(artifact->asked->source, how);
    if (!specification) return not_run(out, "this library refuses its text: " + specification.error().message);
    const auto& request = artifact->asked->request;
    if (source_id(**specification) != artifact->specification || request_key(**specification, request) != artifact->key)
        return not_run(out, "this library understands its text as another variant");
    References references(**specification, request, compiler);
    const auto seen = examine(*artifact, **specification, request, references, verifier, cache::Deadline::max(), seed);
    out.seed = seen.seed;
    if (seen.fault) return not_run(out, seen.fault->message, seen.fault->hint);
    if (!seen.wrong.empty()) return wrong(out, store, id, seen.wrong);
    out.verdict = Rerun::Verdict::Passed;
    out.verification = artifact->verification;
    const auto renewed = artifact->to_record();
    if (const auto kept = store.replace(id, renewed); kept)
        out.id = renewed.id;
    else
        out.hint = fmt::format("its record was not renewed: {} {}", cache::name(kept.code), kept.reason);
    return out;
}

} // namespace

Rerun verify_again(cache::Store& store, const cache::Digest& id, const std::shared_ptr<Compiler>& compiler,
                   Verifier& verifier, std::uint64_t seed) {
    try {
        return run(store, id, compiler, verifier, seed);
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        return not_run({}, std::string("verifying failed: ") + e.what(), "please report");
    }
}

} // namespace cubridge::runtime
