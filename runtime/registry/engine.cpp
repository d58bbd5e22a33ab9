// Engine: opening, answering, waiting.
// SPDX-License-Identifier: Apache-2.0
#include "cubridge/runtime/engine.h"
#include "cubridge/ir/candidate.h"
#include "cubridge/runtime/why.h"
#include "runtime/launch/check.h"
#include "runtime/registry/admit.h"
#include "runtime/registry/lazy_compiler.h"
#include "runtime/registry/state.h"
#include <fmt/format.h>

namespace cubridge::runtime {
namespace {

constexpr std::string_view kOff = "NOT_STORED: CUBRIDGE_MODE is off: every request is rejected";
constexpr std::string_view kSealedText = "SEALED: the context is sealed and this kernel was not there before";
constexpr std::string_view kPendingText = "the kernel is being made: wait for the job and ask again";

std::int64_t seconds_now() {
    return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

void reject(Answer& answer, std::uint32_t reasons, std::string_view message) {
    answer = {Answer::Kind::Rejected, reasons, nullptr, 0, message};
}

std::unique_ptr<cache::Store> store_of(const Settings& settings, Herald& herald) {
    cache::OpenOptions options;
    options.folder = settings.store;
    options.environment = settings.places;
    options.budget = settings.store_max;
    options.warn = [&herald](const cache::Warning& w) {
        herald.log(Level::Warn, fmt::format("event=store trouble={} path={} why={}", cache::name(w.trouble),
                                            quoted(w.path), quoted(w.message)));
    };
    return cache::open_store(std::move(options));
}

/// What a kernel with this plan would need.
Verdict workspace_of(const char* made_by, ir::launch::Plan plan, const ir::Specification& specification,
                     const ir::Request& request, const LaunchArgs& args, std::size_t& bytes) {
    auto state = std::make_unique<ServedKernel::State>();
    state->request = request;
    state->artifact.build.made_by = made_by;
    state->artifact.specification = source_id(specification);
    state->artifact.places = places_of(specification, plan);
    state->artifact.plan = std::move(plan);
    auto binding = binding_of(state->artifact, specification, request);
    if (!binding) return {Status::Internal, "the launch plan does not fit its specification; please report"};
    state->binding = std::move(*binding);
    return ServedKernel(std::move(state)).workspace(args, bytes);
}

} // namespace

Engine::State::State(Settings s)
    : settings(std::move(s)), herald(settings), texts(this), jobs(herald), store(store_of(settings, herald)),
      locks(std::make_unique<cache::Locks>(store->place().read_only ? std::string() : store->place().folder)),
      compiler(settings.compiler != nullptr ? settings.compiler
                                            : std::make_shared<LazyCompiler>(NvrtcSettings{settings.nvrtc, {}})),
      loaders("cubridge-load", 1), makers("cubridge-make", std::max(1, *settings.workers)) {}

Engine::State::~State() {
    {
        const std::lock_guard lock(start);
        sealed = true;
        for (auto& [slot, job] : running) job->cancelled = true;
    }
    jobs.cancel_all();
    makers.stop();
    loaders.stop();
    herald.stop();
}

Engine::Engine(std::unique_ptr<State> state) : state_(std::move(state)) {}
Engine::~Engine() = default;

Verdict Engine::open(Settings settings, std::unique_ptr<Engine>& engine) {
    engine.reset(new Engine(std::make_unique<State>(std::move(settings))));
    const auto& s = *engine->state_;
    for (const auto& warning : s.settings.warnings)
        engine->state_->herald.log(Level::Warn, "event=setting why=" + quoted(warning));
    static constexpr std::array<const char*, 3> kModes = {"adapt", "cached", "off"};
    const auto place = s.store->place();
    engine->state_->herald.log(Level::Info,
                               fmt::format("event=open store={} mode={} workers={}",
                                           place.file.empty() ? "memory" : quoted(place.file),
                                           kModes[static_cast<std::size_t>(s.settings.mode)], *s.settings.workers));
    return {};
}

Verdict Engine::parse(const ir::Source& source, const Text*& text) {
    const auto found = state_->texts.find_or_parse(source);
    if (found) {
        text = *found;
        return {};
    }
    return {Status::BadSpec, found.error().render(source.text)};
}

// ---- Answers ------------------------------------------------------------------------------------------------------

Verdict Engine::get(const Query& query, Want want, Answer& answer) {
    auto& s = *state_;
    if (query.text == nullptr || query.text->owner() != &s)
        return {Status::Misuse, "request.spec is of no parse of this context"};
    Slot* slot = s.table.find(query);
    if (slot == nullptr) {
        std::uint32_t reasons = 0;
        std::string why;
        if (auto v = admit(query, reasons, why); !v) return v;
        slot = &s.table.find_or_add(query);
        if (reasons != 0) {
            Known known;
            known.kind = Known::Kind::Refused;
            known.reasons = reasons;
            known.message = std::move(why);
            s.table.publish(*slot, std::move(known));
        }
    }
    const Known& known = *slot->known.load(std::memory_order_acquire);
    if (s.settings.mode == Mode::Off)
        reject(answer, why::kNotStored, kOff);
    else if (known.kind == Known::Kind::Served || (known.kind == Known::Kind::Refused && known.retry_at == 0))
        s.answer_of(*slot, known, want, answer);
    else if (known.kind == Known::Kind::Pending && (known.makes || want == Want::Cached))
        answer = {Answer::Kind::Pending, 0, nullptr, known.job, kPendingText};
    else
        s.begin(*slot, want, answer);
    static constexpr std::array<Counter, 4> kCounters = {Counter::answers_ready, Counter::answers_fallback,
                                                         Counter::answers_pending, Counter::answers_rejected};
    s.counters.add(kCounters[static_cast<std::size_t>(answer.kind)]);
    return {};
}

void Engine::State::answer_of(const Slot& slot, const Known& known, Want want, Answer& answer) {
    if (known.kind != Known::Kind::Served) return reject(answer, known.reasons, known.message);
    counters.add(Counter::hits_memory);
    if (known.reasons == 0)
        answer = {Answer::Kind::Ready, 0, known.kernel, 0, {}};
    else if (want == Want::Exact || (slot.query.flags & 1u) != 0)
        reject(answer, known.reasons, known.exact_message);
    else
        answer = {Answer::Kind::Fallback, known.reasons, known.kernel, 0, known.message};
}

void Engine::State::begin(Slot& slot, Want want, Answer& answer) {
    const bool makes = want != Want::Cached && settings.mode == Mode::Adapt && *settings.workers > 0;
    const std::lock_guard lock(start);
    const Known& known = *slot.known.load(std::memory_order_acquire);
    if (known.kind == Known::Kind::Served || (known.kind == Known::Kind::Refused && seconds_now() < known.retry_at))
        return answer_of(slot, known, want, answer);
    if (sealed) {
        counters.add(Counter::answers_while_sealed_missing);
        return reject(answer, why::kSealed, kSealedText);
    }
    if (known.kind == Known::Kind::NotStored && !makes) return reject(answer, known.reasons, known.message);
    if (known.kind == Known::Kind::Pending) {
        if (makes) running.at(&slot)->make = true;
        answer = {Answer::Kind::Pending, 0, nullptr, known.job, kPendingText};
        return;
    }
    counters.add(Counter::misses);
    const auto job = jobs.begin(slot.query.text->state().title);
    job->make = makes;
    running[&slot] = job;
    Known pending;
    pending.kind = Known::Kind::Pending;
    pending.job = job->number;
    pending.makes = makes;
    table.publish(slot, std::move(pending));
    try {
        loaders.add([this, &slot, job] { guarded(slot, job, &State::look_up); });
    } catch (...) { // no thread to be had
        running.erase(&slot);
        table.publish(slot, Known{});
        jobs.end(*job, {Status::Environment, "the system has no thread left"});
        throw;
    }
    answer = {Answer::Kind::Pending, 0, nullptr, job->number, kPendingText};
}

std::uint64_t Engine::generation() const {
    return state_->generation.load(std::memory_order_acquire);
}

// ---- Jobs -----------------------------------------------------------------------------------------------------------

Verdict Engine::poll(std::uint64_t job, Progress& progress) {
    return state_->jobs.poll(job, progress);
}

Verdict Engine::wait(std::uint64_t job, std::int64_t timeout_ms) {
    if (state_->herald.on_thread()) return {Status::Misuse, "a callback must not wait: jobs end through its thread"};
    return state_->jobs.wait(job, timeout_ms);
}

Verdict Engine::cancel(std::uint64_t job) {
    auto& s = *state_;
    {
        const std::lock_guard lock(s.start);
        for (auto it = s.running.begin(); it != s.running.end(); ++it)
            if (it->second->number == job) {
                it->second->cancelled = true;
                s.counters.add(Counter::adaptations_cancelled);
                s.table.publish(*it->first, Known{});
                s.running.erase(it);
                break;
            }
    }
    return s.jobs.cancel(job);
}

Verdict Engine::seal(bool sealed) {
    auto& s = *state_;
    {
        const std::lock_guard lock(s.start);
        s.sealed = sealed;
        if (!sealed) return {};
        for (const auto& [slot, job] : s.running) {
            job->cancelled = true;
            s.table.publish(*slot, Known{});
        }
        s.running.clear();
    }
    s.jobs.cancel_all();
    return {};
}

// ---- The rest -------------------------------------------------------------------------------------------------------

Verdict Engine::workspace(const Query& query, const LaunchArgs& args, std::size_t& bytes) {
    auto& s = *state_;
    if (query.text == nullptr || query.text->owner() != &s)
        return {Status::Misuse, "request.spec is of no parse of this context"};
    std::uint32_t reasons = 0;
    std::string why;
    if (auto v = admit(query, reasons, why); !v) return v;
    if (reasons != 0) return {Status::Unsupported, why};
    if (const Slot* slot = s.table.find(query)) {
        const Known& known = *slot->known.load(std::memory_order_acquire);
        if (known.kind == Known::Kind::Served) return known.kernel->workspace(args, bytes);
    }
    const auto specification = query.text->state().for_heads(query.heads);
    if (!specification) return {Status::Unsupported, specification.error().message};
    const auto request = request_of(query, arch_of(query));
    auto kernel = ir::generic_kernel(**specification, request);
    if (!kernel) return {Status::Unsupported, kernel.error().message};
    if (auto v = workspace_of("generic", std::move(kernel->plan), **specification, request, args, bytes); !v) return v;
    const auto experts = ir::Candidate::experts(**specification, request);
    if (!experts) return {};
    for (const auto& expert : *experts) { // any of them may come to serve
        const auto candidate = ir::Candidate::transfer(**specification, request, expert);
        if (!candidate) continue;
        auto plan = candidate->plan(**specification, request);
        if (!plan) continue;
        std::size_t by_rules = 0;
        if (auto v = workspace_of("rules", std::move(*plan), **specification, request, args, by_rules); !v) return v;
        bytes = std::max(bytes, by_rules);
    }
    return {};
}

bool Engine::forked() const {
    return state_->fork.forked();
}

void Engine::abandon(std::unique_ptr<Engine> engine) {
    (void)engine.release(); // its threads don't exist here and its locks may be held by them
}

} // namespace cubridge::runtime
