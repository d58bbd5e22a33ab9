// The pipeline from a specification and a request to an artifact, and the report of one run of it.
// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "cubridge/cache/lock.h"
#include "cubridge/cache/store.h"
#include "cubridge/ir/generic.h"
#include "cubridge/runtime/artifact.h"
#include "cubridge/runtime/verifier.h"

namespace cubridge::runtime {

struct Stage {
    enum class Verdict { Ok, Skipped, Failed };
    std::string name; ///< "parse", "lookup", "match", "generic", "compile", "verify", "store", ...
    double ms = 0;
    Verdict verdict = Verdict::Ok;
    std::string reason; ///< why skipped or failed, the expert's name first where it is one's; empty when ok
};

/// One adaptation, as the command line, the logs and the page print it.
struct Report {
    enum class Status { Ready, Fallback, Rejected, Failed };
    Status status = Status::Failed;
    /// Of Failed and Rejected: kind, message, place in the text and hint. Kinds beyond those of ir: "compile",
    /// "no_compiler", "arch", "environment", "cancelled", "deadline".
    std::optional<ir::Error> error;
    std::string tier = "made"; ///< "made", "memory", "store", "bundle", "remote"
    std::uint32_t reasons = 0; ///< CUBRIDGE_WHY_... bits
    std::vector<Stage> stages;
    std::vector<std::string> warnings;
    std::optional<Artifact> artifact;
    double total_ms = 0;
    bool joined = false;     ///< another thread or process was making it, and this run took what that one stored
    bool older = false;      ///< stored, made without the rules of this library, and could not be made again
    std::string compiled_in; ///< "process", "worker": CompileResult::where; empty: nothing was compiled
    std::string log;         ///< of a compile that failed: lines about the generated source

    /// The JSON object of `cubridge adapt --json` (docs/command-line.md). `source` is the text, for nothing but
    /// columns.
    std::string json(const ir::Specification* specification, const ir::Request& request) const;
};

struct AdaptOptions {
    std::shared_ptr<Compiler>
        compiler; ///< called on a thread of its own beside the execution; or null: only what is stored is served
    cache::Store* store = nullptr; ///< or null: nothing is looked up or kept
    cache::Locks* locks = nullptr; ///< or null: no other maker is waited for
    int workers = 2;               ///< adaptations at a time among all processes that share the locks
    int cores = 0; ///< with four, what may run out of registers and what comes next compile together; 0: the machine's
    cache::Deadline deadline = cache::Deadline::max();
    std::shared_ptr<Verifier> verifier; ///< runs what was made; or null: it is executed as a program only
    /// Only what a GPU has run is an answer: of what is stored too. What can't be run now is kept, and no answer.
    bool verified = false;
    std::function<bool()> cancelled; ///< asked between and, where possible, within stages
    std::function<void(const std::string& stage)> progress;
    /// A generic kernel that was made without the rules of this library is no answer, even where nothing can be
    /// compiled.
    bool renew = false;
    /// device_text() of the GPU that the kernel is for: what was tuned on another gives way. Empty: any is as good.
    std::string device;
    /// Only these experts, in this order; empty: ir::Candidate::in_turn(). Where one is named, nothing
    /// is looked up and nothing kept: the store is for what would be made without.
    std::vector<std::string> experts;
    /// Prints the kernel; empty: ir::generic_kernel. Replaced where a kernel of one's own is to pass the pipeline.
    std::function<ir::Result<ir::GenericKernel>(const ir::Specification&, const ir::Request&)> printer;
};

/// BuildId::rules of a kernel that the rules of this library make.
std::string rules_build();

/// Looks in the store, waits for another maker of the same key or becomes it, makes, compiles and publishes. Any
/// thread; throws nothing but std::bad_alloc. Without a verifier the
/// kernel has not run, and its record says so.
Report adapt(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
             const AdaptOptions& options);

/// What came of a stored kernel that was run again.
struct Rerun {
    enum class Verdict {
        Passed,
        Wrong,     ///< it was set aside, and serves no more
        NotRun,    ///< and stays as it was
        Elsewhere, ///< not run: it is for another architecture
    } verdict = Verdict::NotRun;
    std::string arch; ///< of the kernel
    std::string why;  ///< of all but Passed
    std::string hint; ///< of NotRun; may be empty
    std::uint64_t seed = 0;
    std::optional<Verification> verification; ///< of Passed
    std::optional<cache::Digest> id;          ///< of Passed, where it was kept: its id from now on
};

/// Has the kernel of that id run with the text and the request that its record holds; what it is run against is
/// compiled anew. Passed, the record is renewed in the store. `seed` 0: a fresh one. Any thread; throws nothing but
/// std::bad_alloc.
Rerun verify_again(cache::Store& store, const cache::Digest& id, const std::shared_ptr<Compiler>& compiler,
                   Verifier& verifier, std::uint64_t seed = 0);

/// Sizes that were not given become the defaults (head dim 128, 32 query heads on 8 KV heads), or the nearest that the
/// specification allows (as many KV heads as query heads, one KV head, head dims 576 and 512). Says in `notes` which.
/// `heads_kv` 0: not given. Errors: "domain" where nothing fits.
ir::Result<ir::Request> complete(const ir::Specification& specification, ir::Request request, int& heads_q,
                                 int& heads_kv, std::vector<std::string>& notes);

} // namespace cubridge::runtime
