// What the engine's threads do: look up and load; make what is not stored.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/json.h"
#include "cubridge/runtime/why.h"
#include "ir/spec/variant.h"
#include "runtime/registry/admit.h"
#include "runtime/registry/state.h"
#include <algorithm>
#include <fcntl.h>
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr std::int64_t kRetrySeconds = 60;
constexpr char kNotStored[] = "NOT_STORED: the kernel is not stored, and this request starts no work";

std::int64_t seconds_now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

Status status_of(const std::string& kind) {
    if (kind == "cancelled") return Status::Cancelled;
    if (kind == "domain" || kind == "unsupported" || kind == "arch") return Status::Unsupported;
    if (kind == "no_compiler" || kind == "no_driver" || kind == "no_device" || kind == "deadline" || kind == "memory" ||
        kind == "busy" || kind == "unverified")
        return Status::Environment;
    if (kind == "context_lost" || kind == "driver" || kind == "capture" || kind == "artifact") return Status::Cuda;
    return Status::Internal;
}

/// Those that pass by themselves: asked again, they are tried again after a while.
bool passes(const std::string& kind) {
    return kind == "deadline" || kind == "memory" || kind == "busy" || kind == "capture" || kind == "unverified";
}

Report failure(const Fault& fault, std::uint32_t reasons) {
    Report report;
    report.status = Report::Status::Rejected;
    report.reasons = reasons;
    report.error = ir::Error{fault.kind, fault.message, {}, fault.hint};
    return report;
}

/// Does a row that keeps no key come out as NaN, as the text is written?
bool may_give_nan(const ir::Specification& specification, const ir::Request& request) {
    const auto* variant = specification.variant();
    return variant != nullptr && request.empty_rows == ir::Request::EmptyRows::AsWritten &&
           std::any_of(variant->parts.begin(), variant->parts.end(),
                       [](const auto& part) { return part.empty == ir::Part::Empty::NaN; });
}

/// What a kernel for it may have been tuned on; empty where none is named.
std::string device_of(Devices& devices, int ordinal) {
    if (ordinal < 0) return "";
    const auto context = devices.context(ordinal);
    return context ? device_text((*context)->device()) : "";
}

} // namespace

void Engine::State::guarded(Slot& slot, const std::shared_ptr<Job>& job,
                            void (State::*work)(Slot&, const std::shared_ptr<Job>&)) {
    Report report;
    try {
        // Before anything else of CUDA: in the default mode a mere allocation here would spoil a caller's capture.
        std::optional<RelaxedCapture> relaxed;
        if (slot.query.device >= 0)
            if (const auto driver = devices.driver()) relaxed.emplace((*driver)->symbols());
        (this->*work)(slot, job);
        return;
    } catch (const std::bad_alloc&) {
        report = failure({"memory", "the process is out of memory", "", 0, ""}, why::kMemory);
    } catch (const std::exception& e) {
        report = failure({"internal", std::string("making the kernel failed: ") + e.what(), "please report", 0, ""},
                         why::kFailed);
    }
    refuse(slot, job, report);
}

bool Engine::State::wanted(Slot& slot, const Job& job) {
    const auto it = running.find(&slot);
    return it != running.end() && it->second.get() == &job && !job.cancelled && !sealed;
}

void Engine::State::finish(Slot& slot, const std::shared_ptr<Job>& job, Known known, Verdict verdict) {
    {
        const std::lock_guard lock(start);
        if (!wanted(slot, *job)) return; // cancelled: whoever did it has ended the job
        const bool better = known.kind == Known::Kind::Served;
        table.publish(slot, std::move(known));
        running.erase(&slot);
        if (better) generation.fetch_add(1, std::memory_order_acq_rel);
    }
    jobs.end(*job, std::move(verdict));
}

void Engine::State::refuse(Slot& slot, const std::shared_ptr<Job>& job, const Report& report) {
    const auto& error = *report.error;
    Known known;
    known.kind = Known::Kind::Refused;
    known.reasons = report.reasons;
    known.message = fmt::format("{}: {}{}{}", why::names(report.reasons), error.message, error.hint.empty() ? "" : "; ",
                                error.hint);
    if (passes(error.kind)) known.retry_at = seconds_now() + kRetrySeconds;
    herald.log(Level::Warn, fmt::format("event=rejected why={} kind={} message={}", why::names(report.reasons),
                                        error.kind, quoted(error.message)));
    Verdict verdict{status_of(error.kind), known.message};
    finish(slot, job, std::move(known), std::move(verdict));
}

bool Engine::State::prepare(Slot& slot, const std::shared_ptr<Job>& job,
                            std::shared_ptr<const ir::Specification>& specification, ir::Request& request) {
    const Query& query = slot.query;
    std::string arch = arch_of(query);
    if (query.device >= 0) {
        const auto context = devices.context(query.device);
        if (!context) {
            refuse(slot, job, failure(context.fault(), why::kArch));
            return false;
        }
        const auto& device = (*context)->device();
        if (arch.empty()) arch = device.arch;
        if (number_of_arch(arch) != number_of_arch(device.arch)) {
            refuse(
                slot, job,
                failure({"arch",
                         fmt::format("a kernel for {} does not run on {}, which is {}", arch, device.name, device.arch),
                         "leave request.arch empty, or set request.device to -1", 0, ""},
                        why::kArch));
            return false;
        }
    }
    request = request_of(query, arch);
    auto parsed = query.text->state().for_heads(query.heads);
    if (!parsed) {
        Report report;
        report.reasons = why::kHeads;
        report.error = parsed.error();
        refuse(slot, job, report);
        return false;
    }
    specification = std::move(*parsed);
    return true;
}

void Engine::State::look_up(Slot& slot, const std::shared_ptr<Job>& job) {
    std::shared_ptr<const ir::Specification> specification;
    ir::Request request;
    jobs.stage(*job, "look up");
    if (!prepare(slot, job, specification, request)) return;
    AdaptOptions options;
    options.store = store.get();
    options.device = device_of(devices, slot.query.device);
    options.renew = job->make;
    options.verified = !settings.executor;
    auto report = adapt(specification, request, options);
    trace(report, *specification, request);
    if (report.artifact) return serve(slot, job, std::move(report), specification, request);
    if (report.error->kind != "no_compiler") return refuse(slot, job, report);
    {
        const std::lock_guard lock(start);
        if (!wanted(slot, *job)) return;
        if (job->make) {
            makers.add([this, &slot, job] { guarded(slot, job, &State::make); });
            return;
        }
        Known known;
        known.kind = Known::Kind::NotStored;
        known.reasons = why::kNotStored;
        known.message = kNotStored;
        table.publish(slot, std::move(known));
        running.erase(&slot);
    }
    jobs.end(*job, {Status::Unsupported, kNotStored});
}

void Engine::State::make(Slot& slot, const std::shared_ptr<Job>& job) {
    std::shared_ptr<const ir::Specification> specification;
    ir::Request request;
    if (job->cancelled || !prepare(slot, job, specification, request)) return;
    AdaptOptions options;
    options.compiler = compiler;
    options.store = store.get();
    options.device = device_of(devices, slot.query.device);
    options.locks = locks.get();
    options.verified = !settings.executor;
    if (options.verified) options.verifier = verifier_for(slot.query.device);
    options.workers = *settings.workers;
    options.deadline = std::chrono::steady_clock::now() + settings.deadline;
    options.cancelled = [&] { return job->cancelled.load(); };
    options.progress = [&](const std::string& stage) { jobs.stage(*job, stage); };
    counters.add(Counter::adaptations_started);
    auto report = adapt(specification, request, options);
    counters.add(Counter::adaptation_ms, static_cast<std::uint64_t>(report.total_ms));
    for (const auto& stage : report.stages)
        if (stage.name == "compile") counters.add(Counter::compile_ms, static_cast<std::uint64_t>(stage.ms));
    count_verified(report);
    if (!report.artifact) {
        const bool cancelled = report.error->kind == "cancelled";
        if (!cancelled) counters.add(Counter::adaptations_failed);
        return refuse(slot, job, report);
    }
    // Another process may have published between this one's own look-up and the adapter's.
    const bool made = report.tier == "made";
    counters.add(made           ? Counter::adaptations_ok
                 : report.older ? Counter::adaptations_failed
                                : Counter::adaptations_joined);
    if (report.older)
        herald.log(Level::Warn, fmt::format("event=not_renewed key={} id={} why={}", report.artifact->key.hex(8),
                                            report.artifact->id.hex(8), quoted(report.warnings.back())));
    if (made) {
        const auto& by = report.artifact->build.made_by;
        counters.add(by == "rules"   ? Counter::made_by_rules
                     : by == "model" ? Counter::made_by_model
                                     : Counter::made_by_generic);
        herald.log(Level::Info,
                   fmt::format("event=adapted key={} variant={} arch={} by={} id={} ms={:.0f}",
                               report.artifact->key.hex(8), quoted(slot.query.text->state().title), request.arch,
                               report.artifact->build.made_by, report.artifact->id.hex(8), report.total_ms));
    }
    serve(slot, job, std::move(report), specification, request);
}

std::shared_ptr<Verifier> Engine::State::verifier_for(int device) {
    std::string name = settings.verify_gpu;
    if (name.empty() && device >= 0) {
        if (settings.visible.starts_with("MIG-")) {
            std::string_view rest = settings.visible;
            for (int k = 0; k < device && !rest.empty(); ++k)
                rest.remove_prefix(
                    std::min(rest.size(), rest.find(',') == rest.npos ? rest.size() : rest.find(',') + 1));
            name = rest.substr(0, rest.find(','));
        } else if (const auto context = devices.context(device)) {
            name = (*context)->device().uuid;
        }
    }
    const std::lock_guard lock(verifying);
    auto& verifier = verifiers[name];
    if (verifier == nullptr) {
        VerifierSettings how;
        how.file = settings.worker;
        how.device = name;
        verifier = settings.verifier ? settings.verifier(name) : open_verifier(std::move(how));
    }
    return verifier;
}

void Engine::State::count_verified(const Report& report) {
    for (const auto& stage : report.stages) {
        if (stage.name != "verify") continue;
        counters.add(Counter::verify_ms, static_cast<std::uint64_t>(stage.ms));
        const bool ran = stage.verdict != Stage::Verdict::Skipped;
        counters.add(stage.verdict == Stage::Verdict::Failed ? Counter::verify_rejected
                     : ran                                   ? Counter::verified_gpu
                     : settings.executor                     ? Counter::verified_executor
                                                             : Counter::verify_unavailable);
        if (stage.verdict == Stage::Verdict::Failed)
            herald.log(Level::Error, fmt::format("event=wrong_kernel_caught why={}", quoted(stage.reason)));
        else if (!ran && !settings.executor)
            herald.log(Level::Warn, fmt::format("event=unverified why={}", quoted(stage.reason)));
    }
}

void Engine::State::serve(Slot& slot, const std::shared_ptr<Job>& job, Report report,
                          const std::shared_ptr<const ir::Specification>& specification, const ir::Request& request) {
    jobs.stage(*job, "load");
    auto state = std::make_unique<ServedKernel::State>();
    state->owner = this;
    state->report = report.json(specification.get(), request);
    state->stored = report.tier == "store";
    state->artifact = std::move(*report.artifact);
    state->request = request;
    state->id = state->artifact.id.hex();
    auto binding = binding_of(state->artifact, *specification, request);
    if (!binding)
        return refuse(
            slot, job,
            failure({"internal", "the kernel does not fit its specification", "please report", 0, ""}, why::kFailed));
    state->binding = std::move(*binding);
    if (slot.query.device >= 0) {
        const auto begin = std::chrono::steady_clock::now();
        auto context = devices.context(slot.query.device);
        if (!context) return refuse(slot, job, failure(context.fault(), why::kArch));
        std::optional<Fault> fault;
        auto library = Library::load(*context, state->artifact.cubin);
        if (!library) fault = library.fault();
        for (const auto& entry : state->artifact.plan.entries) {
            if (fault) break;
            auto kernel = (*library)->kernel(entry.name.c_str(), entry.shared_bytes);
            if (kernel)
                state->loaded.kernels.push_back(*kernel);
            else
                fault = kernel.fault();
        }
        if (fault) {
            if (fault->kind == "artifact") {
                (void)store->quarantine(state->artifact.id, fault->message);
                herald.log(Level::Warn, fmt::format("event=quarantined id={} why={} action=\"made again\"",
                                                    state->artifact.id.hex(8), quoted(fault->message)));
                const std::lock_guard lock(start);
                if (state->stored && job->make && !job->renewed.exchange(true) && wanted(slot, *job)) {
                    makers.add([this, &slot, job] { guarded(slot, job, &State::make); });
                    return;
                }
            }
            return refuse(slot, job, failure(*fault, fault->kind == "memory" ? why::kMemory : why::kFailed));
        }
        state->loaded.context = *std::move(context);
        state->loaded.library = *std::move(library);
        const std::chrono::duration<double, std::milli> took = std::chrono::steady_clock::now() - begin;
        herald.log(Level::Info, fmt::format("event=loaded id={} device={} ms={:.1f} from={}", state->id.substr(0, 8),
                                            slot.query.device, took.count(), report.tier));
    }
    if (report.tier == "store") counters.add(Counter::hits_store);

    Known known;
    known.kind = Known::Kind::Served;
    known.reasons = report.reasons;
    const std::string unverified = (report.reasons & why::kUnverified) != 0
                                       ? "\nUNVERIFIED: " + state->artifact.verification.record
                                       : std::string();
    known.message = "VARIANT: the generic kernel serves: as correct as any, and slow" + unverified;
    known.exact_message = "VARIANT: an exact kernel was asked for, and only the generic one can be made" + unverified;
    if (report.reasons != 0)
        herald.log(Level::Warn, fmt::format("event=fallback key={} why={} serving={}", state->artifact.key.hex(8),
                                            why::names(report.reasons), state->artifact.build.made_by));
    if (may_give_nan(*specification, request))
        herald.log(Level::Warn,
                   fmt::format("event=nan_rows key={} why=\"a row that keeps no key is NaN, as the text is written\" "
                               "hint=\"request.empty_rows = CUBRIDGE_EMPTY_ZERO\"",
                               state->artifact.key.hex(8)));
    auto kernel = std::make_unique<ServedKernel>(std::move(state));
    known.kernel = kernel.get();
    {
        const std::lock_guard lock(start);
        kernels.push_back(std::move(kernel));
    }
    finish(slot, job, std::move(known), {});
}

void Engine::State::trace(const Report& report, const ir::Specification& specification,
                          const ir::Request& request) const {
    if (settings.trace.empty()) return;
    auto line = Json::object();
    line.add("key", request_key(specification, request).hex(16));
    line.add("tier", report.artifact ? report.tier : "none").add("ms", report.total_ms);
    line.add("decision", report.artifact ? "served" : "missed");
    const std::string text = line.text() + "\n";
    const int file = ::open(settings.trace.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (file < 0) return;
    [[maybe_unused]] const auto written = ::write(file, text.data(), text.size());
    ::close(file);
}

} // namespace cubridge::runtime
