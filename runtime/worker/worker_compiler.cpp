// Turns in worker processes; what happens when one dies.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/worker/worker_compiler.h"
#include "cubridge/cache/digest.h"
#include "runtime/compiler/nvrtc_library.h"
#include "runtime/gate/foreign.h"
#include "runtime/worker/find.h"
#include <algorithm>
#include <fmt/format.h>
#include <new>

namespace cubridge::runtime {
namespace worker {
namespace {

constexpr auto kStart = std::chrono::seconds(20);       ///< for loading NVRTC and one compile, on a busy machine
constexpr auto kGrace = std::chrono::milliseconds(200); ///< for NVRTC to give up by itself: that keeps the worker
constexpr auto kPause = std::chrono::seconds(10);       ///< between attempts where none starts
constexpr int kDeaths = 2;
constexpr std::size_t kRemembered = 256;

/// What a text that kills its compiler is known by.
std::string digest_of(const Request& request) {
    return cache::sha256(write(request)).hex();
}

} // namespace

/// A place of one's own for as long as this lives; empty where none got free in time.
class Workers::Turn {
public:
    Turn(Workers& all, Clock::time_point deadline) : all_(all) {
        std::unique_lock lock(all_.mutex_);
        // One that runs before one that must be started.
        const auto find = [&] {
            for (const bool running : {true, false})
                for (auto& place : all_.places_)
                    if (!place.taken && (place.process != nullptr) == running) return place_ = &place, true;
            return false;
        };
        if (all_.freed_.wait_until(lock, deadline, find)) place_->taken = true;
    }
    ~Turn() {
        if (place_ == nullptr) return;
        if (place_->process != nullptr && !place_->process->usable()) place_->end();
        const std::lock_guard lock(all_.mutex_);
        place_->taken = false;
        all_.freed_.notify_one();
    }
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;
    Place* operator->() const { return place_; }
    Place& operator*() const { return *place_; }
    explicit operator bool() const { return place_ != nullptr; }

private:
    Workers& all_;
    Place* place_ = nullptr;
};

Workers::Workers(WorkerSettings settings)
    : settings_(std::move(settings)), file_(find_executable(settings_.file)),
      places_(static_cast<std::size_t>(std::clamp(settings_.processes, 1, 64))) {}

Workers::~Workers() {
    if (fork_.forked()) // the processes and their keepers are the parent's
        for (auto& place : places_)
            if (auto* process = place.process.release(); process != nullptr) process->disown();
}

Fault Workers::forked() const {
    return Fault{"worker", "this process was made by fork after its workers were opened", "open them after fork"};
}

Outcome<void> Workers::start(Place& place, Clock::time_point deadline) {
    if (place.process != nullptr && place.process->idle()) return {}; // no text is blamed for one that died before it
    place.end();
    {
        const std::lock_guard lock(mutex_);
        if (broken_ && Clock::now() < again_) return *broken_;
    }
    Outcome<std::unique_ptr<Process>> made =
        Fault{"worker", "the executable `cubridge`, which works for this library, was not found beside it nor in PATH",
              "name it in CUBRIDGE_WORKER"};
    if (!file_.empty())
        made = Process::start(file_, {build_id(), settings_for_child(settings_.nvrtc), settings_.memory},
                              std::min(deadline, Clock::now() + kStart));
    if (!made && Clock::now() >= deadline) // says nothing about the executable
        return Fault{"deadline", "the worker was not ready when the time for the compile was over"};
    const std::lock_guard lock(mutex_);
    if (!made) {
        broken_ = made.fault();
        again_ = Clock::now() + kPause;
        return made.fault();
    }
    broken_.reset();
    place.process = *std::move(made);
    place.pid = place.process->ready().pid;
    ready_ = place.process->ready();
    return {};
}

Outcome<CompileResult> Workers::in_a_worker(const CompileJob& job, bool& started) {
    const auto begin = Clock::now();
    const auto time = job.deadline.count() > 0 ? job.deadline : settings_.longest;
    const auto deadline = begin + time;
    Request request{job, settings_.memory, settings_.gated};
    request.job.deadline = {};
    const auto digest = digest_of(request);
    const Turn turn(*this, deadline);
    if (!turn) return Fault{"deadline", "other compiles took the time that this one had"};
    for (;;) {
        {
            const std::lock_guard lock(mutex_);
            if (const auto known = killers_.find(digest); known != killers_.end() && known->second >= kDeaths)
                return Fault{"worker", fmt::format("{} workers died while they compiled this text: it is refused",
                                                   known->second)};
        }
        if (auto running = start(*turn, deadline); !running) {
            started = running.fault().kind == "deadline";
            return running.fault();
        }
        const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now());
        request.job.deadline = std::max(left, std::chrono::milliseconds(1));
        auto answer = turn->process->compile(request, deadline + kGrace);
        if (answer) {
            answer->where = "worker";
            answer->milliseconds = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        }
        const std::lock_guard lock(mutex_);
        if (answer || answer.fault().kind != "died") {
            killers_.erase(digest);
            return answer;
        }
        if (killers_.size() >= kRemembered) killers_.clear();
        if (++killers_[digest] >= kDeaths) {
            auto fault = answer.fault();
            fault.kind = "worker";
            fault.message += fmt::format(", {} times while it compiled this text", kDeaths);
            return fault;
        }
    }
}

Outcome<CompileResult> Workers::compile(const CompileJob& job) {
    if (fork_.forked()) return forked();
    bool started = true;
    auto result =
        gates::guarded(job, [&] { return in_a_worker(job, started); }); // here: the worker may be lying by then
    if (started || settings_.otherwise == nullptr || job.foreign) return result;
    auto here = settings_.otherwise->compile(job);
    if (here) here->note = "compiled in this process: " + result.fault().text();
    return here;
}

Outcome<Ready> Workers::greeting() {
    if (fork_.forked()) return forked();
    {
        const std::lock_guard lock(mutex_);
        if (ready_) return *ready_;
    }
    const auto deadline = Clock::now() + settings_.longest;
    const Turn turn(*this, deadline);
    if (!turn) return Fault{"deadline", "other compiles took the time"};
    if (auto running = start(*turn, deadline); !running) return running.fault();
    return turn->process->ready();
}

Outcome<std::string> Workers::identity() {
    auto ready = greeting();
    if (ready) return ready->identity;
    return settings_.otherwise != nullptr ? settings_.otherwise->identity() : ready.fault();
}

Outcome<Confinement> Workers::confinement() {
    auto ready = greeting();
    if (!ready) return ready.fault();
    return ready->confinement;
}

std::string Workers::location() const {
    const std::lock_guard lock(mutex_);
    if (ready_) return ready_->location;
    return settings_.otherwise != nullptr ? settings_.otherwise->location() : std::string();
}

std::vector<int> Workers::pids() const {
    std::vector<int> all;
    for (const auto& place : places_)
        if (const int pid = place.pid; pid > 0) all.push_back(pid);
    return all;
}

} // namespace worker

std::shared_ptr<WorkerCompiler> open_worker(WorkerSettings settings) {
    return std::make_shared<worker::Workers>(std::move(settings));
}

} // namespace cubridge::runtime
