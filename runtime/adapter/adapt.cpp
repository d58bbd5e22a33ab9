// The pipeline: look up, become the one maker, print, compile, judge, keep.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/ir/candidate.h"
#include "cubridge/ir/kernel_abi.h"
#include "cubridge/runtime/adapter.h"
#include "cubridge/runtime/why.h"
#include "runtime/adapter/compiling.h"
#include "runtime/adapter/examine.h"
#include "runtime/adapter/gate.h"
#include "runtime/adapter/references.h"
#include "runtime/adapter/refusal.h"
#include "runtime/adapter/stored.h"
#include "runtime/compiler/options.h"
#include "runtime/launch/binding.h"
#include <algorithm>
#include <ctime>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>
#include <thread>

namespace cubridge::runtime {
namespace {

using Clock = std::chrono::steady_clock;

constexpr char kPrinter[] = "generic-1";
constexpr int kCoresForTwo = 4; ///< compiles of one kernel: others are for the host

double since(Clock::time_point begin) {
    return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// One run of the pipeline. Each step answers whether the next is to run; what ended it is in the report.
class Adaptation {
public:
    Adaptation(const ir::Specification& specification, const ir::Request& request, const AdaptOptions& options)
        : specification_(specification), request_(request), options_(options) {}

    Report run() {
        const auto begin = Clock::now();
        report_.warnings = specification_.notes();
        key_ = request_key(specification_, request_);
        if (!look_up(false)) make();
        if (older_ && options_.compiler != nullptr && report_.error && report_.error->kind != "cancelled")
            serve_older();
        report_.total_ms = since(begin);
        return std::move(report_);
    }

private:
    /// A stage that is recorded when it ends, as Failed unless it was said to be otherwise.
    class Timed {
    public:
        Timed(Adaptation& run, std::string name) : Timed(run, std::move(name), run.report_.stages) {}
        Timed(Adaptation& run, std::string name, std::vector<Stage>& into) : into_(into) {
            stage_.name = std::move(name);
            stage_.verdict = Stage::Verdict::Failed;
            if (run.options_.progress) run.options_.progress(stage_.name);
        }
        ~Timed() {
            if (stage_.ms == 0) stage_.ms = since(begin_);
            into_.push_back(std::move(stage_));
        }
        void took(double ms) { stage_.ms = ms; } ///< more than what was waited for here
        void ok() { stage_.verdict = Stage::Verdict::Ok; }
        void skipped(std::string why) {
            stage_.verdict = Stage::Verdict::Skipped;
            stage_.reason = std::move(why);
        }
        void failed(std::string why) { stage_.reason = std::move(why); }
        Timed(const Timed&) = delete;
        Timed& operator=(const Timed&) = delete;

    private:
        std::vector<Stage>& into_;
        Stage stage_;
        const Clock::time_point begin_ = Clock::now();
    };

    void make() {
        if (options_.compiler == nullptr && unverified_) {
            end(Report::Status::Rejected, why::kUnverified | why::kNoCompiler,
                {"no_compiler",
                 "the kernel is stored, " + not_run(*unverified_) +
                     ", and there is no compiler for what it is run against",
                 {},
                 "install NVRTC"});
            return;
        }
        if (options_.compiler == nullptr) {
            end(Report::Status::Rejected, why::kNotStored | why::kNoCompiler,
                {"no_compiler", "the kernel is not stored and there is no compiler to make it", {}, "install NVRTC"});
            return;
        }
        if (stopped() || !become_maker()) return;
        if (options_.locks != nullptr && look_up(true)) return;
        if (verify_stored()) return;
        Artifact artifact = blank();
        if (!rules(artifact)) {
            if (report_.error) return;
            artifact = blank();
            if (stopped() || !print(artifact) || stopped()) return;
            Compiling compiling(options_.compiler, job_of(artifact));
            (void)references();
            if (!compile(artifact, compiling)) return;
            if (!verify(artifact))
                return end(Report::Status::Failed, why::kFailed,
                           {"verify",
                            "the generic kernel did not pass: " + report_.stages.back().reason,
                            {},
                            "please report"});
        }
        keep(artifact);
        serve(std::move(artifact), "made");
    }

    // ---- Store --------------------------------------------------------------------------------------------------
    bool look_up(bool again) {
        Timed stage(*this, "lookup");
        if (options_.store == nullptr) return stage.skipped("no store"), false;
        if (!options_.experts.empty()) return stage.skipped("an expert is named"), false;
        const bool disk = !options_.store->place().file.empty();
        auto found = best_stored(*options_.store, key_, source_id(specification_), options_.device,
                                 [this](std::optional<cache::Record> record) { return take(std::move(record)); });
        stage.ok();
        // A generic kernel that was made before the rules of this library were tried on the variant gives way.
        if (found && (options_.compiler != nullptr || options_.renew) && !options_.printer &&
            found->build.made_by == "generic" && found->build.rules != generic_build()) {
            older_ = std::move(*found);
            older_tier_ = disk ? "store" : "memory";
            return false;
        }
        if (found && options_.verified && !found->verification.stands()) {
            unverified_ = std::move(*found);
            unverified_tier_ = disk ? "store" : "memory";
            return false;
        }
        if (!found) return false;
        report_.joined = again;
        serve(std::move(*found), disk ? "store" : "memory");
        return true;
    }

    std::optional<Artifact> take(std::optional<cache::Record> record) {
        if (!record) return std::nullopt;
        auto artifact = Artifact::from_record(*record);
        if (!artifact) {
            (void)options_.store->quarantine(record->id, artifact.error().message);
            report_.warnings.push_back(artifact.error().message + "; made again");
            return std::nullopt;
        }
        if (artifact->plan.abi != ir::abi::kKernelAbi ||
            !binding_of(*artifact, specification_, request_, options_.printer))
            return std::nullopt;
        return std::move(*artifact);
    }

    /// `before`: the record that it takes the place of.
    void keep(Artifact& artifact, const std::optional<cache::Digest>& before = {}) {
        Timed stage(*this, "store");
        auto record = artifact.to_record();
        artifact.id = record.id;
        if (options_.store == nullptr) return stage.skipped("no store");
        if (!options_.experts.empty()) return stage.skipped("an expert is named");
        const auto outcome = before ? options_.store->replace(*before, record) : options_.store->publish(record);
        if (!outcome) {
            stage.failed(outcome.reason);
            report_.warnings.push_back("the kernel was not stored: " + outcome.reason);
        } else if (outcome.code == cache::Code::IN_MEMORY) {
            stage.skipped("kept in memory only" + (outcome.reason.empty() ? "" : ": " + outcome.reason));
        } else {
            stage.ok();
        }
    }

    // ---- One maker ------------------------------------------------------------------------------------------------
    bool become_maker() {
        if (options_.locks == nullptr) return true;
        Timed stage(*this, "lock");
        const auto held = [&](cache::Waited waited, cache::Lock& lock) {
            if (waited.result == cache::Wait::HELD) lock = std::move(waited.lock);
            if (waited.result == cache::Wait::TIMED_OUT) deadline("waiting for another maker of the same kernel");
            if (waited.result == cache::Wait::CANCELLED) cancelled();
            return waited.result == cache::Wait::HELD;
        };
        if (!held(options_.locks->lock(key_, options_.deadline, options_.cancelled), lock_)) return false;
        if (!held(options_.locks->slot(options_.workers, options_.deadline, options_.cancelled), slot_)) return false;
        stage.ok();
        return true;
    }

    // ---- Making -----------------------------------------------------------------------------------------------------
    static std::string generic_build() {
        return fmt::format("{} abi-{} without {}", kPrinter, ir::abi::kKernelAbi, ir::candidate_version());
    }

    Artifact blank() const {
        Artifact artifact;
        artifact.key = key_;
        artifact.arch = request_.arch;
        artifact.subject = specification_.subject();
        artifact.specification = source_id(specification_);
        artifact.asked = asked();
        artifact.created = static_cast<std::int64_t>(std::time(nullptr));
        return artifact;
    }

    Asked asked() const { return {specification_.source(), specification_.heads(), request_}; }

    /// An expert's kernel, changed by rules until it computes the variant; the experts are tried in turn. False: no
    /// kernel came of any, the stages say why, and the generic one is to be made.
    bool rules(Artifact& artifact) {
        if (options_.printer) return false;
        std::vector<std::string> in_turn = options_.experts;
        if (in_turn.empty()) {
            auto experts = choose();
            if (!experts) {
                Timed stage(*this, "transfer");
                return passed_over(stage, experts.error(), "");
            }
            in_turn = std::move(*experts);
        }
        std::string wanting; // what failed for another reason than registers: fewer keys a tile would not help
        std::unique_ptr<Attempt> next;
        for (std::size_t k = 0; k < in_turn.size(); ++k) {
            if (stopped()) return false;
            if (!wanting.empty() && in_turn[k].rfind(wanting + "/", 0) == 0) continue;
            const bool alone = next == nullptr;
            const auto attempt = alone ? begin(in_turn[k]) : std::move(next);
            if (!report_.error && alone && cores() >= kCoresForTwo && attempt->may_need_another() &&
                k + 1 < in_turn.size() && in_turn[k + 1].rfind(attempt->plain() + "/", 0) == 0)
                next = begin(in_turn[k + 1]);
            if (by_rules(*attempt)) return artifact = std::move(attempt->artifact), true;
            if (report_.error) return false;
            if (report_.stages.back().name != "compile") wanting = attempt->plain(), next.reset();
        }
        return false;
    }

    ir::Result<std::vector<std::string>> choose() {
        Timed stage(*this, "choose");
        auto experts = ir::Candidate::in_turn(specification_, request_);
        stage.ok();
        return experts;
    }

    /// An expert's program, changed and lowered, and its compile, which goes on by itself.
    struct Attempt {
        std::string expert;
        std::optional<ir::Candidate> candidate;
        Artifact artifact;
        std::vector<std::string> warpgroups;
        std::vector<Stage> stages; ///< not in the report yet
        std::vector<std::string> warnings;
        std::unique_ptr<Compiling> compiling; ///< null: it came to nothing

        std::string plain() const { return expert.substr(0, expert.find('/')); }
        /// This one may run out of registers, and then the next would be compiled.
        bool may_need_another() const { return compiling && candidate->crowded(); }
    };

    std::unique_ptr<Attempt> begin(const std::string& expert) {
        auto attempt = std::make_unique<Attempt>();
        attempt->expert = expert;
        attempt->artifact = blank();
        prepare(*attempt);
        return attempt;
    }

    void prepare(Attempt& a) {
        {
            Timed stage(*this, "transfer", a.stages);
            auto made = ir::Candidate::transfer(specification_, request_, a.expert);
            if (!made) return (void)passed_over(stage, made.error(), a.expert + ": ");
            a.candidate = std::move(*made);
            stage.ok();
        }
        if (stopped()) return;
        {
            Timed stage(*this, "lower", a.stages);
            auto lowered = a.candidate->lower(specification_, request_);
            if (!lowered) return (void)give_way(stage, a.warnings, a.expert + ": " + lowered.error().message);
            Artifact& artifact = a.artifact;
            artifact.cuda = std::move(lowered->kernel.cuda);
            artifact.plan = std::move(lowered->kernel.plan);
            artifact.places = places_of(specification_, artifact.plan);
            artifact.expert_program = a.candidate->expert_program();
            artifact.program = a.candidate->program();
            artifact.difference = std::move(lowered->difference);
            artifact.build.made_by = "rules";
            artifact.build.rules = rules_build();
            artifact.build.expert = a.candidate->expert();
            a.warpgroups = std::move(lowered->warpgroups);
            stage.ok();
        }
        if (stopped()) return;
        a.compiling = std::make_unique<Compiling>(options_.compiler, job_of(a.artifact));
        (void)references();
    }

    /// Executes while the compiler works; then both have their say.
    bool by_rules(Attempt& a) {
        std::move(a.stages.begin(), a.stages.end(), std::back_inserter(report_.stages));
        std::move(a.warnings.begin(), a.warnings.end(), std::back_inserter(report_.warnings));
        if (report_.error || !a.compiling) return false;
        {
            Timed stage(*this, "execute");
            const auto run = a.candidate->execute(specification_);
            if (!run.passed) return give_way(stage, report_.warnings, a.expert + ": " + run.record);
            a.artifact.verification.level = Verified::Executor;
            a.artifact.verification.record = run.record;
            stage.ok();
        }
        if (stopped()) return false;
        if (compile(a.artifact, *a.compiling, a.warpgroups)) {
            if (verify(a.artifact)) return true;
            report_.warnings.push_back("the rules' kernel was not used: " + a.expert + ": " +
                                       report_.stages.back().reason);
            return false;
        }
        const auto& kind = report_.error->kind; // no other source would fare better where it is the compiler's own
        if (kind != "compile" && kind != "gate" && kind != "empty" && kind != "memory" && kind != "worker")
            return false;
        report_.warnings.push_back("the rules' kernel did not compile: " + a.expert + ": " + report_.error->message);
        report_.error.reset();
        report_.reasons = 0;
        report_.status = Report::Status::Failed;
        return false;
    }

    static bool passed_over(Timed& stage, const ir::Error& error, const std::string& prefix) {
        error.kind == "internal" ? stage.failed(prefix + error.message) : stage.skipped(prefix + error.message);
        return false;
    }

    static bool give_way(Timed& stage, std::vector<std::string>& warnings, const std::string& why) {
        stage.failed(why);
        warnings.push_back("the rules' program was not used: " + why);
        return false;
    }

    bool print(Artifact& artifact) {
        Timed stage(*this, "generic");
        auto kernel = options_.printer ? options_.printer(specification_, request_)
                                       : ir::generic_kernel(specification_, request_);
        if (!kernel) {
            const auto& error = kernel.error();
            stage.failed(error.message);
            end(Report::Status::Rejected, reasons_of_refusal(specification_, request_, error), error);
            return false;
        }
        artifact.cuda = std::move(kernel->cuda);
        artifact.plan = std::move(kernel->plan);
        artifact.places = places_of(specification_, artifact.plan);
        artifact.build.rules = generic_build();
        stage.ok();
        return true;
    }

    CompileJob job_of(const Artifact& artifact) const {
        CompileJob job;
        job.source = artifact.cuda;
        job.name = artifact.build.made_by == "rules" ? "attention.cu" : "generic.cu";
        job.arch = request_.arch;
        if (options_.deadline != cache::Deadline::max())
            job.deadline =
                std::max(std::chrono::milliseconds(1),
                         std::chrono::duration_cast<std::chrono::milliseconds>(options_.deadline - Clock::now()));
        return job;
    }

    /// `warpgroups`: kernels that spills or serialised products make another kernel.
    bool compile(Artifact& artifact, Compiling& compiling, const std::vector<std::string>& warpgroups = {}) {
        Timed stage(*this, "compile");
        auto result = compiling.get();
        if (!result) return refuse(stage, result.fault(), artifact.build.expert);
        stage.took(result->milliseconds);
        artifact.cubin = std::move(result->cubin);
        artifact.entries = std::move(result->entries);
        artifact.build.compiler = result->compiler;
        report_.compiled_in = result->where;
        if (!result->note.empty()) report_.warnings.push_back(std::move(result->note));
        artifact.build.options = fmt::format("{}", fmt::join(standing_options(request_.arch), " "));
        auto judged = gate(artifact, warpgroups, result->remarks);
        if (!judged.refused.empty())
            return refuse(stage, {"compile", std::move(judged.refused), "please report", 0, ""}, artifact.build.expert);
        for (auto& warning : judged.warnings) report_.warnings.push_back(std::move(warning));
        stage.ok();
        return true;
    }

    // ---- On a GPU ---------------------------------------------------------------------------------------------------
    /// Begins to compile them where kernels are to be run; null where not.
    References* references() {
        if (options_.verifier != nullptr && references_ == nullptr) {
            options_.verifier->expect();
            references_ = std::make_unique<References>(specification_, request_, options_.compiler);
        }
        return references_.get();
    }

    /// False: it ran and is wrong. What could not be run has passed what it has passed.
    bool verify(Artifact& artifact) {
        Timed stage(*this, "verify");
        if (options_.verifier == nullptr) return stage.skipped(artifact.verification.record), true;
        const auto seen =
            examine(artifact, specification_, request_, *references(), *options_.verifier, options_.deadline);
        if (seen.fault) {
            unverified_because_ = seen.fault;
            stage.skipped(artifact.verification.record + "; not run: " + seen.fault->text());
        } else if (!seen.wrong.empty()) {
            stage.failed(seen.wrong);
        } else {
            stage.ok();
        }
        return seen.wrong.empty();
    }

    /// A stored kernel that no GPU has run yet, or for an older library. True: it is the answer, or there is none.
    bool verify_stored() {
        if (!unverified_ || options_.verifier == nullptr) return false;
        Artifact artifact = std::move(*unverified_);
        unverified_.reset();
        if (!verify(artifact)) { // made again, it would be the same, unless the rules have changed
            report_.warnings.push_back("a stored kernel is wrong and was set aside: " + report_.stages.back().reason);
            if (options_.store != nullptr) (void)options_.store->quarantine(artifact.id, report_.stages.back().reason);
            return false;
        }
        if (!artifact.asked && artifact.specification == source_id(specification_)) artifact.asked = asked();
        if (artifact.verification.stands()) keep(artifact, artifact.id);
        serve(std::move(artifact), unverified_tier_);
        return true;
    }

    bool refuse(Timed& stage, const Fault& fault, const std::string& expert) {
        stage.failed(expert.empty() ? fault.message : expert + ": " + fault.message);
        report_.log = fault.detail;
        ir::Error error{fault.kind, fault.message, {}, fault.hint};
        if (fault.kind == "no_compiler")
            end(Report::Status::Rejected, why::kNotStored | why::kNoCompiler, std::move(error));
        else if (fault.kind == "arch")
            end(Report::Status::Rejected, why::kArch, std::move(error));
        else
            end(Report::Status::Failed, why::kFailed, std::move(error));
        return false;
    }

    static std::string not_run(const Artifact& artifact) {
        return artifact.verification.level != Verified::Gpu
                   ? "no GPU has run it"
                   : fmt::format("a GPU has run it for an older library (verification {}, not {})",
                                 artifact.verification.format(), kVerification);
    }

    // ---- Ends -------------------------------------------------------------------------------------------------------
    void serve(Artifact artifact, const char* tier) {
        if (options_.verified && !artifact.verification.stands()) {
            const auto& why = unverified_because_;
            return end(Report::Status::Rejected, why::kUnverified,
                       {"unverified",
                        "the kernel is made, and " + not_run(artifact) + (why ? ": " + why->message : std::string()),
                        {},
                        why && !why->hint.empty()
                            ? why->hint
                            : "verify it where there is a GPU, or accept what was executed as a program"});
        }
        report_.tier = tier;
        const bool exact = artifact.build.made_by != "generic",
                   verified = artifact.verification.level != Verified::None;
        report_.reasons = (exact ? 0u : +why::kVariant) | (verified ? 0u : +why::kUnverified);
        report_.status = report_.reasons == 0 ? Report::Status::Ready : Report::Status::Fallback;
        report_.artifact = std::move(artifact);
    }
    /// What was to be renewed, where nothing new could be made.
    void serve_older() {
        report_.warnings.push_back("the stored kernel, made without the rules of this library, was not renewed: " +
                                   report_.error->message);
        report_.error.reset();
        report_.log.clear();
        report_.older = true;
        serve(std::move(*older_), older_tier_);
    }
    void end(Report::Status status, std::uint32_t reasons, ir::Error error) {
        report_.status = status;
        report_.reasons = reasons;
        report_.error = std::move(error);
    }
    void deadline(const std::string& where) {
        end(Report::Status::Failed, why::kBudget, {"deadline", "the deadline passed " + where, {}, "ask again later"});
    }
    void cancelled() {
        end(Report::Status::Failed, why::kFailed, {"cancelled", "the adaptation was cancelled", {}, ""});
    }
    int cores() const {
        return options_.cores > 0 ? options_.cores : static_cast<int>(std::thread::hardware_concurrency());
    }
    bool stopped() {
        if (options_.cancelled && options_.cancelled()) return cancelled(), true;
        if (Clock::now() >= options_.deadline) return deadline("before the next stage"), true;
        return false;
    }

    const ir::Specification& specification_;
    const ir::Request& request_;
    const AdaptOptions& options_;
    cache::Digest key_;
    cache::Lock lock_, slot_;
    std::optional<Artifact> older_;      ///< stored, and to be renewed
    std::optional<Artifact> unverified_; ///< stored, and to be run
    const char* unverified_tier_ = "store";
    std::optional<Fault> unverified_because_; ///< why nothing could be run
    std::unique_ptr<References> references_;
    const char* older_tier_ = "store";
    Report report_;
};

} // namespace

std::string rules_build() {
    return fmt::format("{} abi-{}", ir::candidate_version(), ir::abi::kKernelAbi);
}

Report adapt(const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request,
             const AdaptOptions& options) {
    try {
        return Adaptation(*specification, request, options).run();
    } catch (const std::bad_alloc&) {
        throw;
    } catch (const std::exception& e) {
        Report report;
        report.reasons = why::kFailed;
        report.error = ir::Error{"internal", std::string("adapting failed: ") + e.what(), {}, "please report the text"};
        return report;
    }
}

} // namespace cubridge::runtime
